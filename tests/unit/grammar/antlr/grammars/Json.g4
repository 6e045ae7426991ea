grammar Json;
// As in "The Definitive ANTLR 4 Reference", written anew.
json: value EOF;
obj: '{' pair (',' pair)* '}' | '{' '}';
pair: STRING ':' value;
arr: '[' value (',' value)* ']' | '[' ']';
value: STRING | NUMBER | obj | arr | 'true' | 'false' | 'null';
STRING: '"' (ESC | SAFE)* '"';
fragment ESC: '\\' (["\\/bfnrt] | 'u' HEX HEX HEX HEX);
fragment HEX: [0-9a-fA-F];
fragment SAFE: ~["\\\u0000-\u001F];
NUMBER: '-'? INT ('.' [0-9]+)? EXP?;
fragment INT: '0' | [1-9] [0-9]*;
fragment EXP: [Ee] [+\-]? [0-9]+;
WS: [ \t\n\r]+ -> skip;
