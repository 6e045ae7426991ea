grammar Program;
prog: stat+ EOF;
stat: 'if' expr 'then' stat ('else' stat)? # if
    | ID '=' value=expr ';' # assign
    | 'print' (parts+=expr)+ ';' # print
    | '{' stat* '}' # block
    ;
expr: <assoc=right> expr '^' expr
    | expr op=('*'|'/') expr
    | expr ('+'|'-') expr
    | '-' expr
    | expr '?' expr ':' expr
    | ID '(' (expr (',' expr)*)? ')'
    | ID | INT | STRING | '(' expr ')'
    ;
ID: [a-zA-Z_] [a-zA-Z_0-9]*;
INT: [0-9]+;
STRING: '"' (ESC | .)*? '"';
fragment ESC: '\\' ["\\];
COMMENT: '/*' .*? '*/' -> skip;
LINE: '//' ~[\r\n]* -> channel(HIDDEN);
WS: [ \t\r\n]+ -> skip;
