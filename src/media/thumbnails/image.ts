/** Formats of images from which thumbnails are made. */
export const imageFormats = ['jpeg', 'png', 'webp', 'gif', 'avif'] as const;
export type ImageFormat = (typeof imageFormats)[number];

/** Properties of an image, read from its bytes. */
export interface Image {
  readonly format: ImageFormat;
  /** Width and height in pixels as displayed, after the rotation by the metadata. */
  readonly width: number;
  readonly height: number;
  /** Number of readable frames. */
  readonly frames: number;
  /** Whether the image is animated when displayed, even if its frames cannot be read. */
  readonly isAnimated: boolean;
  /** Whether a part of the image may be transparent. */
  readonly hasAlpha: boolean;
  /** Whether the metadata of the image rotates it. */
  readonly isTurned: boolean;
}

/** Number of bytes at the beginning of a file that identify its format. */
export const signatureLength = 12;

/** The first bytes of each format, and further bytes at an offset. */
const signatures: readonly (readonly [
  format: ImageFormat,
  beginning: string,
  further?: readonly [offset: number, bytes: string],
])[] = [
  ['jpeg', '\xff\xd8\xff'],
  ['png', '\x89PNG\r\n\x1a\n'],
  ['gif', 'GIF87a'],
  ['gif', 'GIF89a'],
  ['webp', 'RIFF', [8, 'WEBP']],
  ...['avif', 'avis', 'mif1', 'msf1'].map((brand) => ['avif', '', [4, `ftyp${brand}`]] as const),
];

/** Returns the format by the first bytes; the claimed content type is ignored. */
export function formatOf(beginning: Uint8Array): ImageFormat | undefined {
  const text = Buffer.from(beginning.subarray(0, signatureLength)).toString('latin1');
  const found = signatures.find(
    ([, start, [at, more] = [0, '']]) => text.startsWith(start) && text.startsWith(more, at),
  );
  return found?.[0];
}

const isSize = (value: unknown): value is number => Number.isSafeInteger(value) && (value as number) >= 1;

/** Validates properties from a file or a process; `undefined` when they are malformed. */
export function asImage(value: unknown): Image | undefined {
  if (typeof value !== 'object' || value === null) return undefined;
  const { format, width, height, frames, isAnimated, hasAlpha, isTurned } = value as Image;
  const isWellFormed =
    imageFormats.includes(format) &&
    [width, height, frames].every(isSize) &&
    [isAnimated, hasAlpha, isTurned].every((known) => typeof known === 'boolean');
  return isWellFormed ? { format, width, height, frames, isAnimated, hasAlpha, isTurned } : undefined;
}

/** Parses the properties that are stored with the thumbnails. */
export function readImage(text: string): Image | undefined {
  try {
    return asImage(JSON.parse(text));
  } catch {
    return undefined;
  }
}
