import { isWordCharacter } from './word-boundary.ts';

const STAR = 0x2a;
const QUESTION_MARK = 0x3f;

/**
 * A glob compiled to a non-deterministic automaton whose states are bits: bit `i` means that the first `i`
 * symbols of the pattern have been matched. All states advance together, without backtracking: reading one
 * character costs `wordCount` steps, whatever the pattern and the text are.
 */
export interface GlobProgram {
  /** Number of 32-bit words that hold the states. */
  readonly wordCount: number;
  /**
   * The sets of states that advance, `wordCount` words each, in one array because there may be many sets. The
   * first set holds the states before a `?`, which advance on any character.
   */
  readonly advancing: Uint32Array;
  /**
   * Where in `advancing` the set of a code point starts. Code points that are not in the pattern use the set
   * at 0.
   */
  readonly setOf: ReadonlyMap<number, number>;
  /** The states that stay on any character: those before a `*`. */
  readonly staying: Uint32Array;
  /** The last state, in which the whole pattern has been matched. */
  readonly accepting: number;
}

/** The text that a program reads: a string, or in tests an object that counts reads. */
export interface CodePoints {
  readonly length: number;
  codePointAt(position: number): number | undefined;
}

const bitOf = (state: number): number => (1 << (state & 31)) >>> 0;

function setBit(words: Uint32Array, from: number, state: number): void {
  words[from + (state >>> 5)]! |= bitOf(state);
}

const hasBit = (words: Uint32Array, state: number): boolean => (words[state >>> 5]! & bitOf(state)) !== 0;

/** Whether the characters `*` and `?` of a pattern are wildcards or stand for themselves. */
export type Wildcards = 'wildcards' | 'literal';

/**
 * Compiles a pattern. Memory in bytes: the number of distinct characters times an eighth of the pattern's
 * length, plus about forty for each distinct character.
 */
export function compileProgram(pattern: string, wildcards: Wildcards): GlobProgram {
  const symbols = [...pattern].map((character) => character.codePointAt(0)!);
  const isStar = (symbol: number) => symbol === STAR && wildcards === 'wildcards';
  const isAny = (symbol: number) => symbol === QUESTION_MARK && wildcards === 'wildcards';
  const literals = new Set(symbols.filter((symbol) => !isStar(symbol) && !isAny(symbol)));
  const accepting = symbols.filter((symbol) => !isStar(symbol)).length;
  const wordCount = (accepting >>> 5) + 1;
  const setOf = new Map([...literals].map((symbol, i) => [symbol, (i + 1) * wordCount]));
  const advancing = new Uint32Array((literals.size + 1) * wordCount);
  const staying = new Uint32Array(wordCount);
  let state = 0;
  for (const symbol of symbols) {
    if (isStar(symbol)) setBit(staying, 0, state);
    else if (isAny(symbol)) setBit(advancing, 0, state++);
    else setBit(advancing, setOf.get(symbol)!, state++);
  }
  const advancingOnAny = advancing.slice(0, wordCount);
  for (const from of setOf.values()) {
    for (const [word, bits] of advancingOnAny.entries()) advancing[from + word]! |= bits;
  }
  return { wordCount, advancing, setOf, staying, accepting };
}

/** Moves all states by one character. Returns false when no state is left. */
function advance(program: GlobProgram, states: Uint32Array, codePoint: number): boolean {
  const { advancing, staying, wordCount } = program;
  const from = program.setOf.get(codePoint) ?? 0;
  let carry = 0;
  let remaining = 0;
  for (let word = 0; word < wordCount; word++) {
    const before = states[word]!;
    const moved = before & advancing[from + word]!;
    const after = (moved << 1) | carry | (before & staying[word]!);
    carry = moved >>> 31;
    states[word] = after;
    remaining |= after;
  }
  return remaining !== 0;
}

/** Whether the glob matches the entire text. Reads each character at most once. */
export function matchesWhole(program: GlobProgram, text: CodePoints): boolean {
  const states = new Uint32Array(program.wordCount);
  states[0] = 1;
  for (let position = 0; position < text.length; ) {
    const codePoint = text.codePointAt(position)!;
    if (!advance(program, states, codePoint)) return false;
    position += codePoint > 0xffff ? 2 : 1;
  }
  return hasBit(states, program.accepting);
}

/**
 * Whether the glob matches a substring that starts and ends at a word boundary. Reads each character at most once.
 */
export function matchesWords(program: GlobProgram, text: CodePoints): boolean {
  const states = new Uint32Array(program.wordCount);
  let insideWord = false;
  for (let position = 0; ; ) {
    const codePoint = position < text.length ? text.codePointAt(position)! : undefined;
    const wordFollows = codePoint !== undefined && isWordCharacter(codePoint);
    if (!insideWord || !wordFollows) {
      states[0]! |= 1;
      if (hasBit(states, program.accepting)) return true;
    }
    if (codePoint === undefined) return false;
    advance(program, states, codePoint);
    insideWord = wordFollows;
    position += codePoint > 0xffff ? 2 : 1;
  }
}
