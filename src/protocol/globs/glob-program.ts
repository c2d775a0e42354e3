import { isWordCharacter } from './word-boundary.ts';

/**
 * A glob as a non-deterministic automaton whose states are bits: bit `i` means that the first `i` symbols of the
 * pattern have been matched. All states advance together, so there is no backtracking: reading one character costs
 * `wordCount` steps whatever the pattern and the text are.
 */
export interface GlobProgram {
  /** Number of 32-bit words that hold the states. */
  readonly wordCount: number;
  /** States that advance on any character: those before a `?`. */
  readonly onAny: Uint32Array;
  /** States that advance on the given code point, `onAny` included. */
  readonly onLiteral: ReadonlyMap<number, Uint32Array>;
  /** States that stay on any character: those before a `*`. */
  readonly staying: Uint32Array;
  /** Number of the last state. */
  readonly accepting: number;
}

/** What a program reads: a string, or in tests something that counts how often it is read. */
export interface Characters {
  readonly length: number;
  codePointAt(position: number): number | undefined;
}

const bitOf = (state: number): number => (1 << (state & 31)) >>> 0;

function setBit(words: Uint32Array, state: number): void {
  words[state >>> 5]! |= bitOf(state);
}

const hasBit = (words: Uint32Array, state: number): boolean => (words[state >>> 5]! & bitOf(state)) !== 0;

/** How the two characters `*` and `?` of a pattern are read. */
export type Wildcards = 'wildcards' | 'literal';

/** Compiles a pattern. Memory is the number of distinct characters times an eighth of the pattern's length. */
export function compileProgram(pattern: string, wildcards: Wildcards): GlobProgram {
  const characters = [...pattern];
  const isStar = (character: string) => character === '*' && wildcards === 'wildcards';
  const accepting = characters.filter((character) => !isStar(character)).length;
  const wordCount = (accepting >>> 5) + 1;
  const onAny = new Uint32Array(wordCount);
  const staying = new Uint32Array(wordCount);
  const literals: [codePoint: number, state: number][] = [];
  let state = 0;
  for (const character of characters) {
    if (isStar(character)) setBit(staying, state);
    else if (character === '?' && wildcards === 'wildcards') setBit(onAny, state++);
    else literals.push([character.codePointAt(0)!, state++]);
  }
  const onLiteral = new Map<number, Uint32Array>();
  for (const [codePoint, from] of literals) {
    const words = onLiteral.get(codePoint) ?? onAny.slice();
    setBit(words, from);
    onLiteral.set(codePoint, words);
  }
  return { wordCount, onAny, onLiteral, staying, accepting };
}

/** Reads one character: moves all states at once. Returns false when no state is left. */
function advance(program: GlobProgram, states: Uint32Array, codePoint: number): boolean {
  const moving = program.onLiteral.get(codePoint) ?? program.onAny;
  const { staying, wordCount } = program;
  let carry = 0;
  let left = 0;
  for (let word = 0; word < wordCount; word++) {
    const before = states[word]!;
    const moved = before & moving[word]!;
    const after = (moved << 1) | carry | (before & staying[word]!);
    carry = moved >>> 31;
    states[word] = after;
    left |= after;
  }
  return left !== 0;
}

/** Whether the glob matches the entire text. Reads each character at most once. */
export function matchesWhole(program: GlobProgram, text: Characters): boolean {
  const states = new Uint32Array(program.wordCount);
  states[0] = 1;
  for (let position = 0; position < text.length; ) {
    const codePoint = text.codePointAt(position)!;
    if (!advance(program, states, codePoint)) return false;
    position += codePoint > 0xffff ? 2 : 1;
  }
  return hasBit(states, program.accepting);
}

/** Whether the glob matches some substring that starts and ends at a word boundary. Reads each character once. */
export function matchesWords(program: GlobProgram, text: Characters): boolean {
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
