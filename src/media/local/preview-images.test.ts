import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, describe, it } from 'node:test';
import { manualClock } from '../../../test/support/clocks/manual-clock.ts';
import { forSelectedDatabases } from '../../../test/support/databases/databases.ts';
import { silentLogger } from '../../kernel/observability/index.ts';
import { systemRandomness } from '../../kernel/randomness.ts';
import { RateLimiter } from '../../kernel/rate-limits/index.ts';
import { MediaStore } from '../disk/media-store.ts';
import { mediaMigrations } from '../migrations.ts';
import type { MediaTables } from '../tables.ts';
import { PreviewImages, type PreviewImagesDeps } from './preview-images.ts';

async function* image(bytes: number) {
  yield Buffer.alloc(bytes);
}

const directory = mkdtempSync(join(tmpdir(), 'hearth-previews-'));
after(() => rmSync(directory, { recursive: true }));

forSelectedDatabases(import.meta.url, (open) => {
  describe('PreviewImages', () => {
    /** @param share bytes that one user may store at once */
    const openTest = async (maxBytes: number, share: number) => {
      const database = await open(mediaMigrations);
      const clock = manualClock();
      const disk = await MediaStore.open(
        { directory, randomness: systemRandomness, log: silentLogger },
        async () => true,
      );
      const deleteLocal = async (ids: readonly string[]) => {
        if (ids.length === 0) return;
        await database.transaction<MediaTables, void>(async (writer) => {
          await writer.deleteFrom('local_media').where('media_id', 'in', ids).execute();
        });
      };
      const openImages = () =>
        new PreviewImages({
          database,
          clock,
          disk,
          randomness: systemRandomness,
          serverName: 'test',
          thumbnails: { measure: async () => ({ format: 'png', width: 1, height: 1 }) },
          moderation: { deleteLocal },
          limit: new RateLimiter({ per_second: share / 100, burst_count: share }, clock),
          options: { enable_authenticated_media: true },
          maxBytes,
        } as unknown as PreviewImagesDeps);
      const storedNames = async () =>
        (
          await database
            .reader<MediaTables>()
            .selectFrom('local_media')
            .select('file_name')
            .orderBy('file_name')
            .execute()
        ).map((row) => row.file_name);
      return { clock, openImages, storedNames };
    };

    it('deletes the oldest images when the images together have reached their maximum size, also after a restart, and all images after three days', async () => {
      const { clock, openImages, storedNames } = await openTest(250, 100_000);
      let images = openImages();
      for (const name of ['1', '2', '3', '4']) {
        clock.advance(1_000);
        assert.notEqual(await images.store('@anna:test', name, image(100)), undefined);
      }
      assert.deepEqual(await storedNames(), ['2', '3', '4']);
      images = openImages();
      clock.advance(1_000);
      await images.store('@anna:test', '5', image(100));
      assert.deepEqual(await storedNames(), ['3', '4', '5']);
      clock.advance(4 * 24 * 3_600_000);
      await images.deleteOld();
      assert.deepEqual(await storedNames(), []);
    });

    it('stores images for one user up to the share of a user, and still stores images for other users', async () => {
      const { clock, openImages, storedNames } = await openTest(1_000, 250);
      const images = openImages();
      const storeFor = async (user: string, name: string) =>
        (await images.store(user, name, image(100))) !== undefined;
      const results = await Promise.all(['1', '2', '3', '4'].map((name) => storeFor('@anna:test', name)));
      assert.equal(results.filter(Boolean).length, 2);
      assert.equal(await storeFor('@ben:test', '5'), true);
      assert.equal((await storedNames()).length, 3);
      clock.advance(60_000);
      assert.equal(await storeFor('@anna:test', '6'), true);
    });
  });
});
