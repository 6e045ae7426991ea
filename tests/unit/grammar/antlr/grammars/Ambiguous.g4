grammar Ambiguous;
start: pal | many;
pal: 'a' pal 'a' | 'b' pal 'b' | 'a' | 'b' | ;
many: 'c' x x 'c' | 'd' y+ 'd';
x: 'a'* ;
y: y y | 'e' | z 'f';
z: 'g' | ;
