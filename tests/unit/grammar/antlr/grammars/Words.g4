grammar Words;
options { language = Java; }
query: SELECT names FROM ID (WHERE cond)? ';'? EOF;
names: '*' | ID (',' ID)*;
cond: cond AND cond | cond OR cond | NOT cond | ID OP (ID | INT | TEXT) | '(' cond ')';
SELECT: [sS] [eE] [lL] [eE] [cC] [tT];
FROM: 'from' | 'FROM';
WHERE: 'where' | 'WHERE';
AND: 'and'; OR: 'or'; NOT: 'not';
OP: '=' | '<' | '<=' | '<>' | '>' | '>=';
ID: LETTER (LETTER | [0-9])*;
INT: '0' .. '9'+;
TEXT: '\'' (~'\'' | '\'\'')* '\'';
fragment LETTER: [a-zA-Z_];
SPACE: [ \n\t]+ -> channel(HIDDEN);
