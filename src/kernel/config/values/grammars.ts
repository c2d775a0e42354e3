import { parseDuration } from './duration.ts';
import { parseFileMode } from './file-mode.ts';
import { formatIpRange, parseIpRange } from './ip-range.ts';
import { isRegularExpression } from './patterns.ts';
import { parseSize } from './size.ts';

/** A textual notation of values that a type alone cannot check. */
interface Grammar {
  /** Describes allowed texts in messages, after "allowed: ". */
  readonly allowed: string;
  /** Returns the value of a text, or undefined when the text is not allowed. */
  readonly parse: (text: string) => string | number | undefined;
}

export type GrammarName =
  | 'duration'
  | 'size'
  | 'file-mode'
  | 'digits'
  | 'version'
  | 'cidr'
  | 'glob'
  | 'regular-expression'
  | 'glob-or-regular-expression';

const noControlCharacters = (text: string): string | undefined =>
  [...text].some((character) => character < ' ') ? undefined : text;

/** The notations of values, by the name that a schema has in `x-grammar`. */
export const grammars: Readonly<Record<GrammarName, Grammar>> = {
  duration: {
    allowed: 'a duration like 500ms, 30s, 10m, 24h, 7d, 1w, 1y or infinity, or a number of milliseconds',
    parse: (text) =>
      text === '.inf' || text === 'Infinity' ? Number.POSITIVE_INFINITY : parseDuration(text),
  },
  size: { allowed: 'a size like 10K, 50M or 500MiB, or a bare number', parse: parseSize },
  'file-mode': { allowed: 'permissions in octal like 660', parse: parseFileMode },
  digits: {
    allowed: 'a whole number',
    parse: (text) => (/^[0-9]{1,15}$/.test(text) ? Number(text) : undefined),
  },
  version: { allowed: 'a version', parse: (text) => (text === '' ? undefined : text) },
  cidr: {
    allowed: 'an address or a range like 10.0.0.0/8 or fc00::/7',
    parse: (text) => {
      const range = parseIpRange(text);
      return range && formatIpRange(range);
    },
  },
  glob: { allowed: 'a pattern in which * and ? are wildcards', parse: noControlCharacters },
  'regular-expression': {
    allowed: 'a regular expression without look-around and back-references',
    parse: (text) => (isRegularExpression(text) ? text : undefined),
  },
  'glob-or-regular-expression': {
    allowed: 'a pattern with * and ?, or a regular expression that begins with ^',
    parse: (text) =>
      text.startsWith('^') && !isRegularExpression(text) ? undefined : noControlCharacters(text),
  },
};
