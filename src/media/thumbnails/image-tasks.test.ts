import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { fileURLToPath } from 'node:url';
import fc from 'fast-check';
import { unhurriedClock } from '../../../test/support/clocks/unhurried-clock.ts';
import {
  firstPixel,
  imageInColourSpace,
  imageMetadata,
  noiseImage,
  redEdges,
  testAnimation,
  testImage,
} from '../../../test/support/inputs/images.ts';
import { runs } from '../../../test/support/inputs/thoroughness.ts';
import { silentLogger } from '../../kernel/observability/index.ts';
import { ImageTasks, NoThumbnail } from './image-tasks.ts';

describe('ImageTasks with untrusted images', () => {
  const folder = mkdtempSync(join(tmpdir(), 'hearth-images-'));
  const deps = { clock: unhurriedClock, log: silentLogger };
  const tasks = new ImageTasks(deps);
  after(() => {
    tasks.stop();
    rmSync(folder, { recursive: true });
  });
  const source = join(folder, 'source');
  const destination = join(folder, 'thumbnail');
  const target = { width: 8, height: 8, method: 'crop' } as const;

  /** Returns the outcome for these bytes. */
  async function tried(bytes: Uint8Array): Promise<'made' | 'refused'> {
    writeFileSync(source, bytes);
    rmSync(destination, { force: true });
    try {
      const { width, height, frames } = await tasks.examine(source, 'urgent');
      assert.ok(width >= 1 && height >= 1 && frames >= 1);
      const isAnimated = frames > 1;
      const format = isAnimated ? 'webp' : 'png';
      const task = { source, destination, target, format, isAnimated, maxPixels: 1_000_000 } as const;
      await tasks.make(task, 'urgent');
    } catch (error) {
      assert.ok(error instanceof NoThumbnail, String(error));
      return 'refused';
    }
    const seen = await imageMetadata(await readFile(destination));
    assert.deepEqual([seen.width, seen.height], [8, 8]);
    return 'made';
  }

  it('makes a thumbnail of damaged images or refuses them, and makes thumbnails of whole images afterwards', async () => {
    const whole = [
      await testImage(40, 30, 'jpeg'),
      await testImage(40, 30, 'webp'),
      await testImage(40, 30, 'avif'),
      await noiseImage(20, 20),
      await testAnimation(20, 20, 'gif'),
      await testAnimation(20, 20, 'webp'),
    ];
    for (const bytes of whole) assert.equal(await tried(bytes), 'made');
    const damage = fc.record({
      bytes: fc.constantFrom(...whole),
      changes: fc.array(fc.record({ at: fc.nat(), byte: fc.integer({ min: 0, max: 255 }) }), {
        minLength: 1,
        maxLength: 10,
      }),
      end: fc.option(fc.nat()),
    });
    await fc.assert(
      fc.asyncProperty(damage, async ({ bytes, changes, end }) => {
        const damaged = Buffer.from(bytes);
        for (const { at, byte } of changes) damaged[at % damaged.length] = byte;
        await tried(end === null ? damaged : damaged.subarray(0, end % damaged.length));
      }),
      { numRuns: runs(300) },
    );
    for (const bytes of whole) assert.equal(await tried(bytes), 'made');
  });

  it('makes a thumbnail of random bytes or refuses them, and makes a thumbnail of an image afterwards', async () => {
    const beginnings = fc.constantFrom(
      '',
      '\xff\xd8\xff',
      '\x89PNG\r\n\x1a\n\0\0\0\rIHDR',
      'GIF89a',
      'RIFF\0\0\x01\0WEBPVP8X',
      'RIFF\0\0\x01\0WEBPVP8L',
      '\0\0\0\x20ftypavif',
    );
    await fc.assert(
      fc.asyncProperty(beginnings, fc.uint8Array({ maxLength: 300 }), async (beginning, bytes) => {
        await tried(Buffer.concat([Buffer.from(beginning, 'latin1'), bytes]));
      }),
      { numRuns: runs(200) },
    );
    assert.equal(await tried(await testImage(9, 9)), 'made');
  });

  const make = async (bytes: Uint8Array) => {
    writeFileSync(source, bytes);
    const task = {
      source,
      destination,
      target,
      format: 'png',
      isAnimated: false,
      maxPixels: 10_000,
    } as const;
    await tasks.make(task, 'urgent');
    return readFile(destination);
  };

  it('converts the colours of CMYK, Display P3, 16-bit and grey images to sRGB, and drops the colour profile', async () => {
    const colour = { r: 200, g: 100, b: 90 };
    for (const [space, stored] of [
      ['cmyk', 'cmyk'],
      ['p3', 'srgb'],
      ['rgb16', 'rgb16'],
    ] as const) {
      const bytes = await imageInColourSpace(colour, space);
      const before = await imageMetadata(bytes);
      assert.equal(before.space, stored);
      const thumbnail = await make(bytes);
      const { space: after, isBare } = await imageMetadata(thumbnail);
      assert.deepEqual([after, isBare], ['srgb', true], space);
      const pixel = await firstPixel(thumbnail);
      for (const [index, value] of Object.values(colour).entries())
        assert.ok(Math.abs(pixel[index]! - value) <= 20, `${space}: ${pixel}`);
    }
    const grey = await make(await imageInColourSpace(colour, 'grey'));
    assert.equal((await imageMetadata(grey)).isBare, true);
    assert.equal(new Set((await firstPixel(grey)).slice(0, 3)).size, 1);
  });

  it('applies each of the eight orientations', async () => {
    const redEdge = ['left', 'right', 'right', 'left', 'top', 'top', 'bottom', 'bottom'] as const;
    for (const [index, edge] of redEdge.entries()) {
      const edges = await redEdges(await make(await testImage(40, 40, 'jpeg', index + 1)));
      const opposite = { left: 'right', right: 'left', top: 'bottom', bottom: 'top' } as const;
      assert.deepEqual([edges[edge], edges[opposite[edge]]], [true, false], `orientation ${index + 1}`);
    }
  });

  it('refuses TIFF, SVG and PBM images, and a missing file', async () => {
    const svg = '<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"/>';
    for (const bytes of [await testImage(9, 9, 'tiff'), Buffer.from(svg), Buffer.from('P1 1 1 1')]) {
      assert.equal(await tried(bytes), 'refused');
    }
    rmSync(source);
    await assert.rejects(tasks.examine(source, 'urgent'), NoThumbnail);
  });

  it('does not load the image library in the process that imports the media repository', () => {
    const moduleUrl = JSON.stringify(new URL('../index.ts', import.meta.url).href);
    const list = 'console.log(JSON.stringify(process.report.getReport().sharedObjects))';
    const loaded = (of: string) =>
      execFileSync(process.execPath, ['--input-type=module', '-e', `await import(${of}); ${list}`], {
        encoding: 'utf8',
      });
    assert.doesNotMatch(loaded(moduleUrl), /vips/);
    const library = JSON.stringify(import.meta.resolve('sharp'));
    assert.match(loaded(library), /vips/);
  });

  describe('processes that fail', () => {
    const program = join(folder, 'program');
    before(() => {
      const moduleUrl = JSON.stringify(new URL('../../kernel/task-processes/index.ts', import.meta.url).href);
      writeFileSync(
        `${program}.ts`,
        `import { performTasks } from ${moduleUrl};
         await performTasks(async () => async () => process.abort());`,
      );
    });
    const running = (path: string) =>
      new ImageTasks(deps, relative(fileURLToPath(new URL('.', import.meta.url)), path));

    it('refuses an image that crashes the process', async () => {
      const crashing = running(program);
      for (let times = 0; times < 2; times++) {
        await assert.rejects(crashing.examine(source, 'urgent'), NoThumbnail);
      }
      crashing.stop();
    });

    it('refuses an image for which the process returns an invalid result', async () => {
      const good = { format: 'png', width: 1, height: 1, frames: 1 };
      const answers = [null, 'image', { kind: 'image' }, { kind: 'made' }, { kind: 'image', image: good }];
      const moduleUrl = JSON.stringify(new URL('../../kernel/task-processes/index.ts', import.meta.url).href);
      writeFileSync(
        `${program}-malformed.ts`,
        `import { performTasks } from ${moduleUrl};
         const answers = ${JSON.stringify(answers)};
         await performTasks(async () => async () => answers.shift());`,
      );
      const malformed = running(`${program}-malformed`);
      for (const _ of answers) await assert.rejects(malformed.examine(source, 'urgent'), NoThumbnail);
      malformed.stop();
    });

    it('fails with TaskFailure, not NoThumbnail, when no process can be started', async () => {
      const missing = running(join(folder, 'missing'));
      await assert.rejects(missing.examine(source, 'urgent'), { reason: 'unavailable' });
      missing.stop();
    });
  });
});
