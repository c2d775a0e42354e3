import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { unhurriedClock } from '../../../test/support/clocks/unhurried-clock.ts';
import { forSelectedDatabases } from '../../../test/support/databases/databases.ts';
import { startTestServer, type TestServer } from '../../../test/support/servers/server.ts';
import { Administration } from '../test/administration.ts';
import { mediaCalls } from '../test/media-calls.ts';
import { readPagesWhileChanging } from '../test/read-pages.ts';

forSelectedDatabases(import.meta.url, ({ kind }) => {
  describe('statistics of media in the admin API', () => {
    let server: TestServer;
    let admin: Administration;
    before(async () => {
      server = await startTestServer({ database: kind, clock: unhurriedClock });
      admin = await Administration.open(server);
    });
    after(() => server.stop());
    const { newUser, upload } = mediaCalls(() => ({ server, admin }));
    const far = 4_000_000_000_000;

    it('GET /statistics/users/media lists each user once when users upload their first file or lose their last one between two pages', async () => {
      for (const [index, order] of [
        {},
        { order_by: 'media_length', dir: 'b' },
        { order_by: 'media_count' },
      ].entries()) {
        const term = `paged${index}`;
        const newNamedUser = async () => {
          const user = await newUser();
          await admin.do('PUT', `/v2/users/${user.id}`, { displayname: term });
          return user;
        };
        const permanent: string[] = [];
        const [early, late] = [await newNamedUser(), await newNamedUser()];
        let passing = await upload(early, 'x');
        for (const content of ['1', '22', '333', '4444', '55555', '666666']) {
          const user = await newNamedUser();
          await upload(user, content);
          permanent.push(user.id);
        }
        const page = async (query: Record<string, string | number>) => {
          const body = await admin.do('GET', '/v1/statistics/users/media', undefined, {
            search_term: term,
            ...order,
            ...query,
          });
          const rows = body['users'] as { user_id: string }[];
          const next = body['next_token'] as number | undefined;
          return { keys: rows.map(({ user_id: userId }) => userId), next };
        };
        const expected = (await page({})).keys.filter((userId) => userId !== early.id);
        const keys = await readPagesWhileChanging(
          (from = 0) => page({ limit: 2, from }),
          async (soFar) => {
            await admin.do('DELETE', `/v1/media/test/${passing}`);
            passing = await upload(soFar.length < 4 ? late : early, 'x'.repeat(9 - soFar.length));
          },
        );
        assert.equal(expected.length, permanent.length);
        assert.deepEqual(
          keys.filter((userId) => permanent.includes(userId)),
          expected,
          JSON.stringify(order),
        );
      }
    });

    it('GET /statistics/users/media counts the uploads of each user, with filters, orders and pages', async () => {
      const [few, many] = [await newUser(), await newUser()];
      await upload(few, '0123456789');
      for (const content of ['a', 'b', 'c']) await upload(many, content);
      await admin.do('PUT', `/v2/users/${few.id}`, { displayname: 'Statistician' });
      await admin.do('PUT', `/v2/users/${many.id}`, { displayname: 'Statistics' });
      const usage = async (query: Record<string, string | number> = {}) =>
        (await admin.do('GET', '/v1/statistics/users/media', undefined, {
          search_term: 'statisti',
          ...query,
        })) as unknown as { users: { user_id: string }[]; total: number; next_token?: number };
      assert.deepEqual(await usage(), {
        users: [
          { user_id: few.id, displayname: 'Statistician', media_count: 1, media_length: 10 },
          { user_id: many.id, displayname: 'Statistics', media_count: 3, media_length: 3 },
        ],
        total: 2,
      });
      for (const order_by of ['user_id', 'displayname', 'media_length', 'media_count']) {
        const [first, second] = [
          await usage({ order_by, limit: 1 }),
          await usage({ order_by, limit: 1, from: 1 }),
        ];
        assert.equal(first.next_token, 1);
        assert.deepEqual([...first.users, ...second.users], (await usage({ order_by })).users, order_by);
      }
      assert.equal((await usage({ order_by: 'media_length' })).users[0]!.user_id, many.id);
      const statistics = async (query: Record<string, string | number>) =>
        (await admin.do('GET', '/v1/statistics/users/media', undefined, query)) as unknown as {
          users: { user_id: string }[];
          total: number;
          next_token?: number;
        };
      for (const order_by of ['user_id', 'displayname', 'media_length', 'media_count']) {
        for (const dir of ['f', 'b']) {
          const whole = await statistics({ order_by, dir });
          assert.equal(whole.total, whole.users.length);
          assert.ok(whole.total > 3);
          const paged: unknown[] = [];
          for (let from: number | undefined = 0; from !== undefined; ) {
            const page: Awaited<ReturnType<typeof statistics>> = await statistics({
              order_by,
              dir,
              limit: 2,
              from,
            });
            assert.equal(page.total, whole.total);
            paged.push(...page.users);
            from = page.next_token;
          }
          assert.deepEqual(paged, whole.users, `${order_by} ${dir}`);
        }
      }
      assert.equal((await usage({ from_ts: far })).total, 0);
      const refused = await admin.refused('GET', '/v1/statistics/users/media', undefined, {
        from_ts: 5,
        until_ts: 4,
      });
      assert.deepEqual(refused, [400, 'M_INVALID_PARAM']);
    });
  });
});
