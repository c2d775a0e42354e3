import { open } from 'node:fs/promises';
import sharp, { type Metadata, type Sharp } from 'sharp';
import { formatOf, type Image, type ImageFormat, signatureLength } from './image.ts';
import type { ImageResult, ImageTask, ThumbnailFormat } from './image-task.ts';

// One thread per process, and no cache, since each file is read once.
sharp.concurrency(1);
sharp.cache(false);
// Blocks all loaders, then allows only common formats of photos: no vector graphics and no documents, because these
// could refer to other files.
sharp.block({ operation: ['VipsForeignLoad'] });
sharp.unblock({
  operation: [
    'VipsForeignLoadJpegFile',
    'VipsForeignLoadPngFile',
    'VipsForeignLoadWebpFile',
    'VipsForeignLoadNsgifFile',
    'VipsForeignLoadHeifFile',
  ],
});

/** Runs a task with the library. A file that the library rejects is refused; the process may also crash. */
export async function performImageTask(task: ImageTask): Promise<ImageResult> {
  try {
    if (task.kind === 'examine') return { kind: 'image', image: await examine(task.source) };
    await make(task);
    return { kind: 'made' };
  } catch (error) {
    return { kind: 'refused', why: String(error).slice(0, 500) };
  }
}

/** Option of the library that rejects damaged images and tolerates warnings. */
const failOn = 'error';

async function examine(source: string): Promise<Image> {
  const format = await formatByBeginning(source);
  const metadata = await sharp(source, { limitInputPixels: false, failOn }).metadata();
  if (format === undefined || !hasFormat(metadata, format))
    throw new Error('The file has no known signature, or other content than its signature says');
  const { width, height } = metadata.autoOrient;
  const frames = format === 'gif' || format === 'webp' ? (metadata.pages ?? 1) : 1;
  return {
    format,
    width,
    height,
    frames,
    isAnimated: frames > 1 || (format === 'png' && (await isAnimatedPng(source))),
    hasAlpha: metadata.hasAlpha,
    isTurned: (metadata.orientation ?? 1) !== 1,
  };
}

const hasFormat = ({ format, compression }: Metadata, expected: ImageFormat) =>
  expected === 'avif' ? format === 'heif' && compression === 'av1' : format === expected;

async function formatByBeginning(source: string): Promise<ImageFormat | undefined> {
  const file = await open(source);
  try {
    const { buffer, bytesRead } = await file.read(Buffer.alloc(signatureLength), 0, signatureLength, 0);
    return formatOf(buffer.subarray(0, bytesRead));
  } finally {
    await file.close();
  }
}

/** Number of bytes of the signature at the beginning of a PNG image. */
const pngSignatureBytes = 8;

/** Number of bytes of the length and the type at the beginning of a PNG chunk. */
const chunkHeaderBytes = 8;

/** Number of bytes of the checksum at the end of a PNG chunk. */
const chunkChecksumBytes = 4;

/** Maximum number of PNG chunks that are read before the pixels. */
const maxChunks = 1_000;

/**
 * Reports whether a PNG image has an `acTL` chunk (animation control) before the pixels, or too many chunks there.
 * Source: Portable Network Graphics, third edition, 11.3.7.1.
 */
async function isAnimatedPng(source: string): Promise<boolean> {
  const file = await open(source);
  try {
    const header = Buffer.alloc(chunkHeaderBytes);
    let position = pngSignatureBytes;
    for (let count = 0; count < maxChunks; count++) {
      const { bytesRead } = await file.read(header, 0, chunkHeaderBytes, position);
      const type = header.toString('latin1', 4);
      if (bytesRead < chunkHeaderBytes || type === 'IDAT') return false;
      if (type === 'acTL') return true;
      position += chunkHeaderBytes + header.readUInt32BE(0) + chunkChecksumBytes;
    }
    return true;
  } finally {
    await file.close();
  }
}

const writers: Readonly<Record<ThumbnailFormat, (image: Sharp) => Sharp>> = {
  jpeg: (image) => image.jpeg({ quality: 80 }),
  png: (image) => image.png(),
  webp: (image) => image.webp({ quality: 75, effort: 1 }),
};

/** Makes a thumbnail with colours in sRGB and without metadata. */
async function make(task: Extract<ImageTask, { kind: 'make' }>): Promise<void> {
  const { source, destination, target, format, isAnimated, maxPixels } = task;
  const image = sharp(source, {
    limitInputPixels: maxPixels,
    failOn,
    animated: isAnimated,
    autoOrient: !isAnimated,
  }).resize({
    width: target.width,
    height: target.height,
    fit: target.method === 'crop' ? 'cover' : 'fill',
  });
  await writers[format](image).toFile(destination);
}
