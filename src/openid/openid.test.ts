import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { manualClock } from '../../test/support/clocks/manual-clock.ts';
import { forSelectedDatabases, type OpenDatabase } from '../../test/support/databases/databases.ts';
import { alice, bob, RoutesUnderTest } from '../../test/support/rooms/rooms.ts';
import { Jobs, jobMigrations } from '../kernel/jobs/index.ts';
import { silentLogger } from '../kernel/observability/index.ts';
import { systemRandomness } from '../kernel/randomness.ts';
import { OpenIdTokens, openIdMigrations } from './index.ts';
import { openIdRoutes } from './routes.ts';
import type { OpenIdTables } from './tables.ts';

async function openTokens(open: OpenDatabase) {
  const clock = manualClock();
  const database = await open([...jobMigrations, ...openIdMigrations]);
  const jobs = new Jobs({ database, clock, log: silentLogger, isOnlyProcess: true });
  const tokens = new OpenIdTokens({ database, clock, randomness: systemRandomness, jobs });
  return { clock, database, jobs, tokens };
}

forSelectedDatabases(import.meta.url, (open) => {
  describe('OpenID tokens', () => {
    it('issues a token that identifies its user for an hour, and answers 403 to a request for a token of another user', async () => {
      const { clock, tokens } = await openTokens(open);
      const http = await RoutesUnderTest.start(openIdRoutes(tokens, 'test'), clock);
      try {
        const path = (userId: string) => `/user/${encodeURIComponent(userId)}/openid/request_token`;
        const { status, body } = await http.call(alice, 'POST', path(alice), {});
        assert.equal(status, 200);
        const { access_token, ...rest } = body;
        assert.deepEqual(rest, { token_type: 'Bearer', matrix_server_name: 'test', expires_in: 3_600 });
        assert.equal(await tokens.userOf(String(access_token)), alice);
        assert.equal(await tokens.userOf(`${access_token}x`), undefined);
        assert.equal((await http.call(bob, 'POST', path(alice), {})).status, 403);
        for (const version of ['/r0', '/unstable']) {
          assert.equal((await http.call(alice, 'POST', path(alice), {}, version)).status, 200, version);
        }
        await clock.advance(3_600_000);
        assert.equal(await tokens.userOf(String(access_token)), undefined);
      } finally {
        await http.stop();
      }
    });

    it('keeps only the newest 1,000 tokens of a user who has more than 1,100 when another token is issued', async () => {
      const { clock, database, tokens } = await openTokens(open);
      const first = await tokens.issue(alice);
      const ofBob = await tokens.issue(bob);
      const now = clock.now();
      const rows = Array.from({ length: 1_100 }, (_, index) => ({
        hash: `hash${index}`,
        user_id: alice,
        expires_ts: now + 3_600_001 + index,
      }));
      await database.transaction<OpenIdTables, void>(async (writer) => {
        await writer.insertInto('openid_tokens').values(rows).execute();
      });
      clock.advance(10_000);
      const last = await tokens.issue(alice);
      const { count } = await database
        .reader<OpenIdTables>()
        .selectFrom('openid_tokens')
        .select(({ fn }) => fn.countAll().as('count'))
        .where('user_id', '=', alice)
        .executeTakeFirstOrThrow();
      assert.equal(Number(count), 1_000);
      assert.deepEqual(
        [await tokens.userOf(first.token), await tokens.userOf(last.token), await tokens.userOf(ofBob.token)],
        [undefined, alice, bob],
      );
    });

    it('stores tokens as hashes only, and deletes them after they have expired', async () => {
      const { clock, database, jobs, tokens } = await openTokens(open);
      await jobs.start();
      const rows = () => database.reader<OpenIdTables>().selectFrom('openid_tokens').selectAll().execute();
      const { token } = await tokens.issue(alice);
      assert.ok(!JSON.stringify(await rows()).includes(token));
      await clock.advance(2 * 3_600_000);
      await jobs.settled();
      assert.deepEqual(await rows(), []);
      await jobs.stop();
    });
  });
});
