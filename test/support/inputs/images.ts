import { crc32, deflateSync } from 'node:zlib';
import sharp from 'sharp';

type Format = 'jpeg' | 'png' | 'webp' | 'gif' | 'avif' | 'tiff';

/** Makes an image whose left half is red and whose right half is blue. @param orientation in EXIF: 1 to 8 */
export async function testImage(
  width: number,
  height: number,
  format: Format = 'png',
  orientation?: number,
): Promise<Buffer<ArrayBuffer>> {
  const half = { width: Math.max(1, Math.floor(width / 2)), height, channels: 3, background: 'red' } as const;
  const leftHalf = await sharp({ create: half }).png().toBuffer();
  const twoColours = sharp({ create: { ...half, width, background: 'blue' } }).composite([
    { input: leftHalf, left: 0, top: 0 },
  ]);
  const flat = sharp(await twoColours.removeAlpha().png().toBuffer());
  const oriented = orientation === undefined ? flat : flat.withMetadata({ orientation });
  return Buffer.from(await oriented[format]().toBuffer());
}

/** Makes an image of one colour, given in sRGB, whose pixels are stored in another colour space. */
export async function imageInColourSpace(
  background: { readonly r: number; readonly g: number; readonly b: number },
  space: 'cmyk' | 'p3' | 'grey' | 'rgb16',
): Promise<Buffer<ArrayBuffer>> {
  const oneColour = sharp({ create: { width: 40, height: 30, channels: 3, background } });
  const images = {
    cmyk: () => oneColour.toColourspace('cmyk').withIccProfile('cmyk').jpeg({ quality: 100 }),
    p3: () => oneColour.withIccProfile('p3').png(),
    grey: () => oneColour.toColourspace('grey16').png(),
    rgb16: () => oneColour.toColourspace('rgb16').png(),
  };
  return Buffer.from(await images[space]().toBuffer());
}

/** Returns the colour of the first pixel. */
export async function firstPixel(bytes: Uint8Array): Promise<number[]> {
  const { data, info } = await sharp(bytes).removeAlpha().raw().toBuffer({ resolveWithObject: true });
  return [...data.subarray(0, info.channels)];
}

/** Makes an image of noise, which compresses badly, so that its file is large for its dimensions. */
export async function noiseImage(width: number, height: number): Promise<Buffer<ArrayBuffer>> {
  const create = {
    width,
    height,
    channels: 3,
    background: 'grey',
    noise: { type: 'gaussian', mean: 128, sigma: 30 },
  } as const;
  return Buffer.from(await sharp({ create }).png().toBuffer());
}

/** Makes an animation of three frames: red, green, blue. */
export async function testAnimation(
  width: number,
  height: number,
  format: 'gif' | 'webp',
): Promise<Buffer<ArrayBuffer>> {
  const frames = await Promise.all(
    ['red', 'green', 'blue'].map((background) =>
      sharp({ create: { width, height, channels: 3, background } })
        .png()
        .toBuffer(),
    ),
  );
  return Buffer.from(
    await sharp(frames, { join: { animated: true } })
      [format]({ delay: [50, 50, 50] })
      .toBuffer(),
  );
}

/**
 * Reads the format, colour space, dimensions and metadata of an image; `isBare` means without EXIF data and colour profile.
 */
export async function imageMetadata(bytes: Uint8Array) {
  const { format, space, width, height, pages, orientation, exif, icc } = await sharp(bytes).metadata();
  return {
    format,
    space,
    width,
    height,
    frames: pages ?? 1,
    orientation,
    isBare: exif === undefined && icc === undefined,
  };
}

/** Returns for each edge whether its middle is more red than blue. */
export async function redEdges(bytes: Uint8Array) {
  const { data, info } = await sharp(bytes).removeAlpha().raw().toBuffer({ resolveWithObject: true });
  const isRedAt = (x: number, y: number) => {
    const offset = (y * info.width + x) * info.channels;
    return data[offset]! > data[offset + 2]!;
  };
  const middleRow = Math.floor(info.height / 2);
  const middleColumn = Math.floor(info.width / 2);
  return {
    left: isRedAt(0, middleRow),
    right: isRedAt(info.width - 1, middleRow),
    top: isRedAt(middleColumn, 0),
    bottom: isRedAt(middleColumn, info.height - 1),
  };
}

const signature = Buffer.from('\x89PNG\r\n\x1a\n', 'latin1');

function chunk(type: string, data: Buffer): Buffer {
  const body = Buffer.concat([Buffer.from(type, 'latin1'), data]);
  const [length, sum] = [Buffer.alloc(4), Buffer.alloc(4)];
  length.writeUInt32BE(data.length);
  sum.writeUInt32BE(crc32(body));
  return Buffer.concat([length, body, sum]);
}

/**
 * Makes a black and white PNG whose header claims these dimensions.
 * @param rows how many rows of pixels it really has
 * @param before `acTL` to put an animation control chunk before the pixels
 */
export function pngWithClaimedSize(
  width: number,
  height: number,
  rows = 0,
  before = '',
): Buffer<ArrayBuffer> {
  const header = Buffer.alloc(13);
  header.writeUInt32BE(width, 0);
  header.writeUInt32BE(height, 4);
  header[8] = 1;
  const pixels = deflateSync(Buffer.alloc((Math.ceil(width / 8) + 1) * rows));
  const animation = before === 'acTL' ? [chunk('acTL', Buffer.from([0, 0, 0, 2, 0, 0, 0, 0]))] : [];
  return Buffer.concat([
    signature,
    chunk('IHDR', header),
    ...animation,
    chunk('IDAT', pixels),
    chunk('IEND', Buffer.alloc(0)),
  ]);
}
