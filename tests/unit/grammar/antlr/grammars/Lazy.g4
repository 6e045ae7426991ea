grammar Lazy;
doc: (TAG | text)* EOF;
text: WORD | OTHER | LAZY | '!' ~(TAG | WORD) | '?' .;
TAG: '<!--' .*? '-->' | '<' [a-z]+ '>';
LAZY: '(' [a-z]*? 'x' [a-z]? ')';
SHORT: '@' [a-z]+? 'y'*;
WORD: [a-z\u00e9\u{1F600}]+;
OTHER: [0-9.];
WS: (' ' | '\n')+ -> skip;
