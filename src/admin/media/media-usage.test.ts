import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { forSelectedDatabases } from '../../../test/support/databases/databases.ts';
import type { Database } from '../../kernel/database/index.ts';
import { mediaMigrations } from '../../media/migrations.ts';
import { insertUploaded } from '../../media/store.ts';
import type { MediaTables } from '../../media/tables.ts';
import { profileMigrations } from '../../profiles/migrations.ts';
import type { ProfileTables } from '../../profiles/tables.ts';
import { MediaUsage, type UsageFilter, usageOrders } from './media-usage.ts';

/** The users by their letters: display names, and the sizes of their uploads at times 1, 2, 3 …; bytes. */
const users: Readonly<Record<string, { readonly name: string; readonly sizes: readonly number[] }>> = {
  a: { name: 'Zoe', sizes: [5] },
  b: { name: '', sizes: [1, 1, 1] },
  c: { name: 'Anna', sizes: [9, 20] },
  d: { name: 'Anne', sizes: [] },
  e: { name: 'Joanna', sizes: [2, 2] },
};

async function fill(database: Database): Promise<void> {
  await database.transaction<MediaTables & ProfileTables, void>(async (writer) => {
    for (const [letter, { name, sizes }] of Object.entries(users)) {
      const userId = `@${letter}:test`;
      const displayname = name === '' ? '' : JSON.stringify(name);
      await writer
        .insertInto('listed_profiles')
        .values({
          user_id: userId,
          displayname,
          avatar_url: '',
          search_text: `${letter}\n${name.toLowerCase()}`,
        })
        .execute();
      if (displayname !== '')
        await writer
          .insertInto('profile_fields')
          .values({ user_id: userId, field: 'displayname', value: displayname })
          .execute();
      for (const [index, size] of sizes.entries()) {
        const mediaId = `${letter}${index}`;
        const file = { fileId: mediaId, sha256: mediaId, size, beginning: new Uint8Array() };
        const flags = { isAuthenticated: true, quarantinedBy: undefined };
        await insertUploaded(
          writer as never,
          { mediaId, userId, at: index + 1 },
          { ...file, ...flags, contentType: 'text/plain', fileName: undefined },
        );
      }
    }
  });
}

forSelectedDatabases(import.meta.url, (open) => {
  describe('MediaUsage', () => {
    it('reads the same users by cursors and by offsets, from stored sums and from the uploads of periods', async () => {
      const database = await open([...mediaMigrations, ...profileMigrations]);
      await fill(database);
      const read = async (filter: UsageFilter, bounds: { maxIds: number; maxUploads: number }) => {
        const usage = new MediaUsage({ database }, bounds);
        const found: Record<string, string> = {};
        for (const by of usageOrders) {
          for (const descending of [false, true]) {
            const order = { by, descending };
            const [byCursor, byOffset]: [string[], string[]] = [[], []];
            let start: Parameters<typeof usage.page>[2]['start'] = { offset: 0 };
            for (let offset = 0; ; offset++) {
              const page = await usage.page(filter, order, { start, limit: 1 });
              byCursor.push(...page.rows.map(figures));
              const other = await usage.page(filter, order, { start: { offset }, limit: 1 });
              byOffset.push(...other.rows.map(figures));
              if (page.next === undefined) break;
              start = { after: page.next };
            }
            assert.deepEqual(byOffset, byCursor);
            found[`${by} ${descending ? 'descending' : 'ascending'}`] = byCursor.join(' ');
          }
        }
        const total =
          filter.searchTerm === undefined
            ? await usage.count(filter)
            : (await usage.search(filter, filter.searchTerm)).total;
        return { ...found, total };
      };
      const figures = (row: { user_id: string; media_count: number; media_length: number }) =>
        `${row.user_id[1]}${row.media_count}:${row.media_length}`;
      const expected: readonly { filter: UsageFilter; found: Record<string, unknown> }[] = [
        {
          filter: {},
          found: {
            'user_id ascending': 'a1:5 b3:3 c2:29 e2:4',
            'user_id descending': 'e2:4 c2:29 b3:3 a1:5',
            'displayname ascending': 'b3:3 c2:29 e2:4 a1:5',
            'displayname descending': 'a1:5 e2:4 c2:29 b3:3',
            'media_length ascending': 'b3:3 e2:4 a1:5 c2:29',
            'media_length descending': 'c2:29 a1:5 e2:4 b3:3',
            'media_count ascending': 'a1:5 c2:29 e2:4 b3:3',
            'media_count descending': 'b3:3 e2:4 c2:29 a1:5',
            total: 4,
          },
        },
        {
          filter: { from: 2, until: 2 },
          found: {
            'user_id ascending': 'b1:1 c1:20 e1:2',
            'user_id descending': 'e1:2 c1:20 b1:1',
            'displayname ascending': 'b1:1 c1:20 e1:2',
            'displayname descending': 'e1:2 c1:20 b1:1',
            'media_length ascending': 'b1:1 e1:2 c1:20',
            'media_length descending': 'c1:20 e1:2 b1:1',
            'media_count ascending': 'b1:1 c1:20 e1:2',
            'media_count descending': 'e1:2 c1:20 b1:1',
            total: 3,
          },
        },
        {
          filter: { until: 1, searchTerm: 'ANN' },
          found: {
            'user_id ascending': 'c1:9 e1:2',
            'user_id descending': 'e1:2 c1:9',
            'displayname ascending': 'c1:9 e1:2',
            'displayname descending': 'e1:2 c1:9',
            'media_length ascending': 'e1:2 c1:9',
            'media_length descending': 'c1:9 e1:2',
            'media_count ascending': 'c1:9 e1:2',
            'media_count descending': 'e1:2 c1:9',
            total: 2,
          },
        },
      ];
      for (const { filter, found } of expected) {
        for (const maxIds of [0, 10]) {
          for (const maxUploads of [0, 100])
            assert.deepEqual(
              await read(filter, { maxIds, maxUploads }),
              found,
              JSON.stringify([filter, maxIds, maxUploads]),
            );
        }
      }
      assert.equal((await read({ searchTerm: 'Anne' }, { maxIds: 10, maxUploads: 10 })).total, 0);
    });
  });
});
