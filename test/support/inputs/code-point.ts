import fc from 'fast-check';

/** Number of surrogates, which are not characters. */
const surrogates = 0x800;

/** The first surrogate. */
const firstSurrogate = 0xd800;

/**
 * Any character, as the unit of `fc.string`. The unit `binary` of fast-check means the same, but makes a map of all characters
 * in each process that uses it, which takes a second and 200 MB.
 */
export const codePoint: fc.Arbitrary<string> = fc.nat(0x10ffff - surrogates).map(
  (index) => String.fromCodePoint(index < firstSurrogate ? index : index + surrogates),
  (value) => {
    const code = typeof value === 'string' ? value.codePointAt(0) : undefined;
    if (code === undefined || value !== String.fromCodePoint(code) || !String(value).isWellFormed())
      throw new Error('not a character');
    return code < firstSurrogate ? code : code - surrogates;
  },
);
