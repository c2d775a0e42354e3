/** Formats that thumbnails are made of. */
export const pictureFormats = ['jpeg', 'png', 'webp', 'gif', 'avif'] as const;
export type PictureFormat = (typeof pictureFormats)[number];

/** What is known of a picture, by its bytes. */
export interface Picture {
  readonly format: PictureFormat;
  /** Pixels, as it is looked at: turned, if it says so. */
  readonly width: number;
  readonly height: number;
  /** Those that can be read. */
  readonly frames: number;
  /** Whether it moves where it is looked at; also when its frames can not be read here. */
  readonly isAnimated: boolean;
  /** Whether some of it may be transparent. */
  readonly hasAlpha: boolean;
  /** Whether it has to be turned to be looked at. */
  readonly isTurned: boolean;
}

/** Bytes at the beginning of a file that say which format it is. */
export const signatureLength = 12;

/** What begins so, and at the fifth or ninth byte goes on so. */
const signatures: readonly (readonly [PictureFormat, string, (readonly [number, string])?])[] = [
  ['jpeg', '\xff\xd8\xff'],
  ['png', '\x89PNG\r\n\x1a\n'],
  ['gif', 'GIF87a'],
  ['gif', 'GIF89a'],
  ['webp', 'RIFF', [8, 'WEBP']],
  ...['avif', 'avis', 'mif1', 'msf1'].map((brand) => ['avif', '', [4, `ftyp${brand}`]] as const),
];

/** The format that a file begins like; what its sender says of it does not count. */
export function formatOf(beginning: Uint8Array): PictureFormat | undefined {
  const text = Buffer.from(beginning.subarray(0, signatureLength)).toString('latin1');
  const found = signatures.find(
    ([, start, [at, more] = [0, '']]) => text.startsWith(start) && text.startsWith(more, at),
  );
  return found?.[0];
}

const isSize = (value: unknown): value is number => Number.isSafeInteger(value) && (value as number) >= 1;

/** What is said to be known of a picture, by a file or a process; `undefined` when that is not what it should be. */
export function asPicture(value: unknown): Picture | undefined {
  if (typeof value !== 'object' || value === null) return undefined;
  const { format, width, height, frames, isAnimated, hasAlpha, isTurned } = value as Picture;
  const isGood =
    pictureFormats.includes(format) &&
    [width, height, frames].every(isSize) &&
    [isAnimated, hasAlpha, isTurned].every((known) => typeof known === 'boolean');
  return isGood ? { format, width, height, frames, isAnimated, hasAlpha, isTurned } : undefined;
}

/** From JSON that was kept beside the thumbnails. */
export function readPicture(text: string): Picture | undefined {
  try {
    return asPicture(JSON.parse(text));
  } catch {
    return undefined;
  }
}
