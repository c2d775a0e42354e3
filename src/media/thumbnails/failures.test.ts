import assert from 'node:assert/strict';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { after, afterEach, beforeEach, describe, it } from 'node:test';
import { eventually } from '../../../test/clients/eventually.ts';
import { type ManualClock, manualClock } from '../../../test/support/clocks/manual-clock.ts';
import { plainCaches } from '../../../test/support/servers/caches.ts';
import { silentLogger } from '../../kernel/observability/index.ts';
import { systemRandomness } from '../../kernel/randomness.ts';
import { MediaStore } from '../disk/media-store.ts';
import { ThumbnailStore } from '../disk/thumbnail-store.ts';
import type { MediaFile } from '../media-file.ts';
import { MediaFiles } from '../providers/media-files.ts';
import { ImageTasks } from './image-tasks.ts';
import { Thumbnails } from './thumbnails.ts';

/** Width for which the program of the test hangs. */
const hang = 1;

/** Width for which the program of the test makes a thumbnail. */
const make = 2;

/** Width for which the program of the test deletes its source. */
const loseSource = 3;

/** Width for which the program of the test refuses the image. */
const refuse = 4;

/** How many requests for different images may wait. */
const maxWaiting = 60;

describe('Thumbnails', () => {
  const folder = mkdtempSync(join(tmpdir(), 'hearth-failures-'));
  const journal = join(folder, 'journal');
  const moduleUrl = JSON.stringify(new URL('../../kernel/task-processes/index.ts', import.meta.url).href);
  writeFileSync(
    join(folder, 'program.ts'),
    `import { appendFileSync, rmSync, writeFileSync } from 'node:fs';
     import { performTasks } from ${moduleUrl};
     const known = { format: 'jpeg', width: 1000, height: 1000, frames: 1 };
     const image = { ...known, isAnimated: false, hasAlpha: false, isTurned: false };
     await performTasks(async () => async ({ kind, source, destination, target }) => {
       if (kind === 'examine') return { kind: 'image', image };
       appendFileSync(${JSON.stringify(journal)}, target.width + '\\n');
       if (target.width === ${hang}) await new Promise(() => undefined);
       if (target.width === ${loseSource}) rmSync(source);
       if (target.width === ${refuse}) return { kind: 'refused', why: 'for this test' };
       writeFileSync(destination, 'a thumbnail');
       return { kind: 'made' };
     });`,
  );
  after(() => rmSync(folder, { recursive: true }));

  let clock: ManualClock;
  let directory: string;
  let disk: MediaStore;
  let thumbnails: Thumbnails;
  let providers: { isUsed: boolean; open: () => Promise<undefined> };
  beforeEach(async () => {
    writeFileSync(journal, '');
    clock = manualClock();
    directory = mkdtempSync(join(folder, 'media-'));
    const randomness = systemRandomness;
    const log = silentLogger;
    disk = await MediaStore.open({ directory, randomness, log }, async () => true);
    const store = await ThumbnailStore.open({ directory, randomness, maxKept: 10 });
    const program = relative(import.meta.dirname, join(folder, 'program'));
    const tasks = new ImageTasks({ clock, log }, program, { urgent: maxWaiting, background: 0 });
    providers = { isUsed: false, open: async () => undefined };
    const files = new MediaFiles(disk, providers);
    const options = { dynamic_thumbnails: true, thumbnail_sizes: [], max_image_pixels: 1_000_000 };
    thumbnails = new Thumbnails({ clock, caches: plainCaches(clock), log, files, store, tasks, options });
  });
  afterEach(() => thumbnails.stop());

  async function file(): Promise<MediaFile> {
    async function* content() {
      yield Buffer.from('\xff\xd8\xff and so on', 'latin1');
    }
    const stored = await disk.store('local', content(), async (kept) => kept);
    return {
      ...stored,
      area: 'local',
      contentType: 'image/jpeg',
      fileName: undefined,
      isAuthenticated: true,
      isQuarantined: false,
    };
  }
  const find = (of: MediaFile, width: number, height = width) =>
    thumbnails.find(of, { width, height, method: 'crop', isAnimated: false });
  const triedWidths = () => readFileSync(journal, 'utf8').split('\n').slice(0, -1).map(Number);
  /** Returns the status for the client. */
  const outcome = (answer: Promise<unknown>) =>
    answer.then(
      () => 200,
      (error: { status: number }) => error.status,
    );
  const noThumbnail = { status: 400, errcode: 'M_UNKNOWN' };

  it('kills the process after the timeout, and retries the image only after ten minutes', async () => {
    const image = await file();
    for (const times of [1, 2]) {
      const first = outcome(find(image, hang));
      await eventually('the task to begin', () => triedWidths().length === times);
      const all = Promise.all([first, outcome(find(image, hang)), outcome(find(image, make))]);
      let hasEnded = false;
      void all.then(() => (hasEnded = true));
      await eventually('the timeout', () => {
        // The timeout begins when the process reports that it is ready. This report may arrive after the task has
        // begun.
        if (!hasEnded) clock.advance(20_000);
        return hasEnded;
      });
      assert.deepEqual(await all, [400, 400, 400]);
      await assert.rejects(find(image, make), noThumbnail);
      assert.equal(triedWidths().length, times, 'no retry, not even for another size');
      clock.advance(10 * 60_000);
    }
    assert.equal((await find(image, make)).size, 11);
    assert.equal((await find(await file(), make)).size, 11);
  });

  it('processes other images while one hangs, and bounds the requests that wait for the image that hangs', async () => {
    const image = await file();
    const hanging = outcome(find(image, hang));
    await eventually('the task to begin', () => triedWidths().length === 1);
    // One request is running, and 49 are waiting.
    const behind = Array.from({ length: 50 }, (_, index) => outcome(find(image, make, 1 + index)));
    assert.equal(await Promise.race(behind), 429);
    const other = find(await file(), make);
    const startedAt = clock.monotonic();
    await eventually('the other task to begin', () => {
      // The advanced time is much shorter than the timeout of the image that hangs.
      if (clock.monotonic() < startedAt + 15_000) clock.advance(50);
      return triedWidths().length === 2;
    });
    assert.equal((await other).size, 11);
    thumbnails.stop();
    const all = await Promise.all([hanging, ...behind]);
    assert.equal(all.filter((status) => status === 429).length, 1);
    assert.equal(all.filter((status) => status === 400).length, 50);
  });

  it('answers 429 M_LIMIT_EXCEEDED when too many requests wait', async () => {
    const images = await Promise.all(Array.from({ length: maxWaiting + 2 }, file));
    for (const image of images) await find(image, make);
    const before = triedWidths().length;
    // One request is running, one is refused, and the others are waiting.
    const answers = images.map((image) => outcome(find(image, hang)));
    assert.equal(await Promise.race(answers), 429);
    clock.advance(2_000);
    await eventually('two tasks to begin', () => triedWidths().length === before + 2);
    thumbnails.stop();
    const all = await Promise.all(answers);
    assert.equal(all.filter((status) => status === 429).length, 1);
  });

  it('answers 400 M_UNKNOWN when the image library rejects the image, and does not try the image again', async () => {
    const image = await file();
    await assert.rejects(find(image, refuse), noThumbnail);
    await assert.rejects(find(image, make), noThumbnail);
    assert.deepEqual(triedWidths(), [refuse]);
  });

  it('deletes a thumbnail when the file of its image was deleted while the thumbnail was made', async () => {
    const image = await file();
    await assert.rejects(find(image, loseSource), { status: 404 });
    const remainingEntries = readdirSync(directory, { recursive: true, withFileTypes: true });
    assert.deepEqual(
      remainingEntries.filter((entry) => entry.isFile()).map(({ name }) => name),
      [],
    );
  });

  it('keeps a thumbnail when the file of its image was moved to a storage provider while the thumbnail was made', async () => {
    const image = await file();
    providers.isUsed = true;
    assert.equal((await find(image, loseSource)).contentType, 'image/jpeg');
  });
});
