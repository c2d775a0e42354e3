import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { manualClock } from '../../../test/support/clocks/manual-clock.ts';
import { forSelectedDatabases } from '../../../test/support/databases/databases.ts';
import { plainCaches } from '../../../test/support/servers/caches.ts';
import type { Database } from '../../kernel/database/index.ts';
import { mediaMigrations } from '../../media/migrations.ts';
import { insertUploaded } from '../../media/store.ts';
import type { MediaTables } from '../../media/tables.ts';
import { subtractFromUsage } from '../../media/usage/usage.ts';
import { profileMigrations } from '../../profiles/migrations.ts';
import type { ProfileTables } from '../../profiles/tables.ts';
import { randomNumbers } from '../test/random-numbers.ts';
import { MediaUsage, type UsageFilter, usageOrders } from './media-usage.ts';

/** Users by the letter of their user id. `sizes` are the bytes of their uploads, which are made at the times 1, 2, 3 … */
const users: Readonly<Record<string, { readonly name: string; readonly sizes: readonly number[] }>> = {
  a: { name: 'Zoe', sizes: [5] },
  b: { name: '', sizes: [1, 1, 1] },
  c: { name: 'Anna', sizes: [9, 20] },
  d: { name: 'Anne', sizes: [] },
  e: { name: 'Joanna', sizes: [2, 2] },
};

/** Inserts the users and their uploads. */
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

const depsOf = (database: Database, clock = manualClock()) => ({
  database,
  clock,
  caches: plainCaches(clock),
});

forSelectedDatabases(import.meta.url, (open) => {
  describe('MediaUsage', () => {
    it('returns the same users by cursors and by offsets, for all uploads and for the uploads of a period', async () => {
      const database = await open([...mediaMigrations, ...profileMigrations]);
      await fill(database);
      const read = async (filter: UsageFilter, maxIds: number) => {
        const usage = new MediaUsage(depsOf(database), maxIds);
        const found: Record<string, string> = {};
        for (const by of usageOrders) {
          for (const descending of [false, true]) {
            const order = { by, descending };
            const byCursor: string[] = [];
            const byOffset: string[] = [];
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
      // For a short search term, the users who match are counted before their ids are collected.
      const [, , named] = expected;
      const short = { filter: { until: 1, searchTerm: 'an' }, found: named!.found };
      for (const { filter, found } of [...expected, short]) {
        for (const maxIds of [0, 10]) {
          assert.deepEqual(await read(filter, maxIds), found, JSON.stringify([filter, maxIds]));
        }
      }
      assert.equal((await read({ searchTerm: 'Anne' }, 10)).total, 0);
    });

    it('counts exactly the files and bytes that users have uploaded in random periods, after random uploads and deletions', async () => {
      const database = await open([...mediaMigrations, ...profileMigrations]);
      const random = randomNumbers();
      const uploads = Array.from({ length: 80 }, (_, index) => ({
        mediaId: `m${index}`,
        userId: `@u${random(30)}:test`,
        at: 10 + random(30),
        size: random(20),
      }));
      const deleted = new Set(uploads.filter(() => random(3) === 0).map(({ mediaId }) => mediaId));
      await database.transaction<MediaTables, void>(async (writer) => {
        for (const { mediaId, userId, at, size } of uploads) {
          const file = { fileId: mediaId, sha256: mediaId, size, beginning: new Uint8Array() };
          const flags = { isAuthenticated: true, quarantinedBy: undefined, fileName: undefined };
          await insertUploaded(
            writer,
            { mediaId, userId, at },
            { ...file, ...flags, contentType: 'text/plain' },
          );
        }
        const rows = await writer
          .deleteFrom('local_media')
          .where('media_id', 'in', [...deleted])
          .returning(['file_id', 'user_id', 'size', 'preview_until'])
          .execute();
        await subtractFromUsage(writer, rows);
      });
      const kept = uploads.filter(({ mediaId }) => !deleted.has(mediaId));
      /** Adds up the uploads of a period. */
      const expected = (filter: UsageFilter, by: 'user_id' | 'media_length' | 'media_count') => {
        const { from = 0, until = Number.POSITIVE_INFINITY } = filter;
        const rows = [
          ...Map.groupBy(
            kept.filter(({ at }) => at >= from && at <= until),
            ({ userId }) => userId,
          ),
        ].map(([user_id, files]) => ({
          user_id,
          media_count: files.length,
          media_length: files.reduce((sum, { size }) => sum + size, 0),
        }));
        return rows.sort((one, other) => {
          const order = by === 'user_id' ? 0 : one[by] - other[by];
          return order || (one.user_id < other.user_id ? -1 : 1);
        });
      };
      for (let round = 0; round < 60; round++) {
        const [start, end] = [8 + random(30), 14 + random(30)];
        const filter = {
          ...(random(4) > 0 && { from: start }),
          ...(random(4) > 0 && { until: Math.max(start, end) }),
        };
        const by = (['user_id', 'media_length', 'media_count'] as const)[random(3)]!;
        const descending = random(2) === 1;
        const usage = new MediaUsage(depsOf(database));
        const expectedRows = expected(filter, by);
        if (descending) expectedRows.reverse();
        const offset = random(3);
        const { rows } = await usage.page(filter, { by, descending }, { start: { offset }, limit: 100 });
        const found = rows.map(({ user_id, media_count, media_length }) => ({
          user_id,
          media_count: Number(media_count),
          media_length: Number(media_length),
        }));
        const message = JSON.stringify([filter, by, descending, offset]);
        assert.deepEqual(found, expectedRows.slice(offset), message);
        assert.equal(await usage.count(filter), expectedRows.length, message);
      }
    });

    it('keeps the order of the users of a period for a minute, for later pages, and reads the order again for a cursor that the kept order does not contain', async () => {
      const database = await open([...mediaMigrations, ...profileMigrations]);
      await fill(database);
      const clock = manualClock();
      const usage = new MediaUsage(depsOf(database, clock));
      const figures = async (start: Parameters<typeof usage.page>[2]['start']) => {
        const order = { by: 'media_length' as const, descending: false };
        const { rows, next } = await usage.page({ until: 2 }, order, { start, limit: 2 });
        return { rows: rows.map((row) => `${row.user_id[1]}${row.media_length}`).join(' '), next };
      };
      const first = await figures({ offset: 0 });
      assert.equal(first.rows, 'b2 e4');
      await database.transaction<MediaTables, void>(async (writer) => {
        for (const [table, column] of [
          ['local_media', 'size'],
          ['media_usage', 'bytes'],
        ] as const)
          await writer
            .updateTable(table)
            .set({ [column]: 50 })
            .where('user_id', '=', '@a:test')
            .execute();
      });
      // The order is that of the first page, and the sums are those of now.
      const after = { after: first.next! };
      assert.deepEqual(await figures(after), { rows: 'a50 c29', next: undefined });
      assert.equal((await figures({ after: { value: 3, key: '@x:test' } })).rows, 'e4 c29');
      clock.advance(60_001);
      assert.equal((await figures(after)).rows, 'c29 a50');
      assert.equal((await figures({ offset: 2 })).rows, 'c29 a50');
    });
  });
});
