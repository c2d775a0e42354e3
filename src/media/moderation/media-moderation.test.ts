import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, describe, it } from 'node:test';
import { forSelectedDatabases } from '../../../test/support/databases/databases.ts';
import { silentLogger } from '../../kernel/observability/index.ts';
import { systemRandomness } from '../../kernel/randomness.ts';
import { MediaStore } from '../disk/media-store.ts';
import { mediaMigrations } from '../migrations.ts';
import { insertUploaded } from '../store.ts';
import type { MediaTables } from '../tables.ts';
import { MediaModeration, type MediaModerationDeps } from './media-moderation.ts';

const directory = mkdtempSync(join(tmpdir(), 'hearth-moderation-'));
after(() => rmSync(directory, { recursive: true }));

async function* text() {
  yield Buffer.from('text');
}

forSelectedDatabases(import.meta.url, (open) => {
  describe('MediaModeration', () => {
    const openWith = async (ids: readonly string[]) => {
      const database = await open(mediaMigrations);
      const disk = await MediaStore.open(
        { directory, randomness: systemRandomness, log: silentLogger },
        async () => true,
      );
      const moderation = new MediaModeration({
        database,
        disk,
        access: { flush: async () => undefined },
        providerStorage: { scheduleDeletion: async () => undefined },
        serverName: 'test',
      } as unknown as MediaModerationDeps);
      for (const mediaId of ids) {
        await disk.store('local', text(), (stored) =>
          database.transaction<MediaTables, void>((writer) =>
            insertUploaded(
              writer,
              { mediaId, userId: '@anna:test', at: 1 },
              {
                ...stored,
                sha256: mediaId,
                contentType: 'text/plain',
                fileName: undefined,
                isAuthenticated: true,
                quarantinedBy: undefined,
              },
            ),
          ),
        );
      }
      return { moderation, disk };
    };
    const old = { before: 2, largerThan: 0 };

    it('deletes at most a given number of old files in one call, and further files with the next call', async () => {
      const { moderation } = await openWith(['a', 'b', 'c', 'd']);
      const keepB = async () => new Set(['b']);
      assert.deepEqual(await moderation.deleteOldLocal(old, keepB, 2), ['a', 'c']);
      assert.deepEqual(await moderation.deleteOldLocal(old, keepB, 2), ['d']);
      assert.deepEqual(await moderation.deleteOldLocal(old, keepB, 2), []);
    });

    it('spares files that an administrator protects or quarantines after they were chosen for deletion', async () => {
      const { moderation, disk } = await openWith(['protected', 'quarantined', 'unused']);
      const keepSome = async () => {
        await moderation.setProtected('protected', true);
        await moderation.quarantine([{ serverName: 'test', mediaId: 'quarantined' }], '@admin:test');
        return new Set<string>();
      };
      assert.deepEqual(await moderation.deleteOldLocal(old, keepSome, 10), ['unused']);
      for (const mediaId of ['protected', 'quarantined']) {
        const details = await moderation.details({ serverName: 'test', mediaId });
        assert.equal(await disk.sizeOf('local', details?.fileId ?? ''), 4, mediaId);
      }
    });
  });
});
