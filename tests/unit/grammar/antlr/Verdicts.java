// What ANTLR makes of texts: java -cp antlr-4.13-complete.jar Verdicts.java GRAMMAR.g4 RULE, a text in hex on each line.
// Says 1 for each that its lexer and parser read to the end without an error, else 0.

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import org.antlr.v4.runtime.BaseErrorListener;
import org.antlr.v4.runtime.CharStreams;
import org.antlr.v4.runtime.CommonTokenStream;
import org.antlr.v4.runtime.LexerInterpreter;
import org.antlr.v4.runtime.ParserInterpreter;
import org.antlr.v4.runtime.RecognitionException;
import org.antlr.v4.runtime.Recognizer;
import org.antlr.v4.tool.Grammar;

public class Verdicts {
    static final class Counter extends BaseErrorListener {
        int errors = 0;

        @Override
        public void syntaxError(Recognizer<?, ?> recognizer, Object symbol, int line, int column, String message,
                                RecognitionException exception) {
            errors++;
        }
    }

    public static void main(String[] arguments) throws Exception {
        String text = Files.readString(Path.of(arguments[0])) + "\nwholeText : " + arguments[1] + " EOF ;\n";
        Grammar grammar = new Grammar(text);
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            byte[] bytes = new byte[line.length() / 2];
            for (int at = 0; at < bytes.length; at++) {
                bytes[at] = (byte) Integer.parseInt(line.substring(2 * at, 2 * at + 2), 16);
            }
            Counter counter = new Counter();
            LexerInterpreter lexer =
                grammar.createLexerInterpreter(CharStreams.fromString(new String(bytes, StandardCharsets.UTF_8)));
            lexer.removeErrorListeners();
            lexer.addErrorListener(counter);
            ParserInterpreter parser = grammar.createParserInterpreter(new CommonTokenStream(lexer));
            parser.removeErrorListeners();
            parser.addErrorListener(counter);
            parser.parse(grammar.getRule("wholeText").index);
            System.out.println(counter.errors == 0 ? "1" : "0");
        }
    }
}
