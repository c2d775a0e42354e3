import assert from 'node:assert/strict';
import { it } from 'node:test';
import { manualClock } from '../../../test/support/clocks/manual-clock.ts';
import { forSelectedDatabases } from '../../../test/support/databases/databases.ts';
import { sectionDefaults } from '../../../test/support/inputs/section-defaults.ts';
import { Jobs, jobMigrations } from '../../kernel/jobs/index.ts';
import { silentLogger } from '../../kernel/observability/index.ts';
import { systemRandomness } from '../../kernel/randomness.ts';
import { Templates } from '../../kernel/templates/index.ts';
import { Mails, mailSection } from '../../mail/index.ts';
import { AccountAddresses } from '../addresses/account-addresses.ts';
import { AllowedAddresses } from '../addresses/allowed-addresses.ts';
import { thirdPartyIdMigrations } from '../migrations.ts';
import type { ThirdPartyIdTables } from '../tables.ts';
import { ValidationMails } from './mail-validation.ts';
import { deleteSurplus } from './session-store.ts';
import { TokenRequests } from './token-requests.ts';
import { ValidationSessions } from './validation-sessions.ts';

const hour = 3_600_000;

forSelectedDatabases(import.meta.url, (open) => {
  const setUp = async (maxSessions = 10_000, calls: string[] = []) => {
    const database = await open([...jobMigrations, ...thirdPartyIdMigrations]);
    const clock = manualClock();
    const log = silentLogger;
    const jobs = new Jobs({ database, clock, log, isOnlyProcess: true });
    const kernel = { database, clock, log, jobs, randomness: systemRandomness };
    const sessions = new ValidationSessions({ ...kernel, tokenLifetime: hour, maxSessions });
    // Mails are scheduled and not sent: the jobs of this test are not started.
    const email = sectionDefaults(mailSection, { email: { notif_from: 'a@example.org' } }).email!;
    const mails = new Mails(
      { ...kernel, templates: new Templates({ folders: [] }), serverName: 'test' },
      email,
    );
    const addresses = new AccountAddresses({
      ...kernel,
      allowed: new AllowedAddresses(null),
      published: undefined as never,
      resetStages: [],
      extensions: { checkUse: async () => void calls.push('check of a module') },
    });
    const requests = new TokenRequests({
      sessions,
      addresses,
      mails: new ValidationMails(mails, 'https://test'),
      phones: undefined,
      limiter: { take: (key) => void calls.push(`limit of ${key}`), check: () => undefined },
      options: {
        request_token_inhibit_3pid_errors: true,
        next_link_domain_whitelist: null,
        allowed_local_3pids: null,
        enable_3pid_changes: true,
        account_threepid_delegates: { msisdn: null },
      },
    });
    const sendRequest = (
      email: string,
      purpose: 'registration' | 'password_reset' | 'add_threepid' = 'registration',
    ) => requests.email(purpose, { client_secret: 'secret', send_attempt: 1, email }, '127.0.0.1');
    const count = async (table: keyof ThirdPartyIdTables) =>
      (await database.reader<ThirdPartyIdTables>().selectFrom(table).selectAll().execute()).length;
    return { database, clock, jobs, sessions, addresses, sendRequest, count };
  };

  it('keeps a bounded number of validation sessions and tokens, and deletes those that expire first', async () => {
    const { clock, sendRequest, count, sessions } = await setUp(20);
    const sids: string[] = [];
    for (let index = 0; index < 100; index++) {
      clock.advance(1);
      sids.push(await sendRequest(`user${index}@example.org`));
    }
    for (const table of ['validation_sessions', 'validation_tokens'] as const) {
      const rows = await count(table);
      assert.ok(rows >= 20 && rows <= 40, `${rows} rows of ${table}`);
    }
    const credentials = (index: number) => ({ sid: sids[index]!, clientSecret: 'secret' });
    await assert.rejects(sessions.find('email', credentials(0)), { errcode: 'M_THREEPID_AUTH_FAILED' });
    assert.equal((await sessions.find('email', credentials(99))).address, 'user99@example.org');
  });

  it('deletes the validation sessions that expire first when it may not delete all surplus ones at once', async () => {
    const { clock, database, sendRequest, sessions } = await setUp();
    const sids: string[] = [];
    for (let index = 0; index < 4; index++) {
      clock.advance(1);
      sids.push(await sendRequest(`user${index}@example.org`));
    }
    await database.transaction<ThirdPartyIdTables, void>((writer) => deleteSurplus(writer, 1, 2));
    const credentials = (index: number) => ({ sid: sids[index]!, clientSecret: 'secret' });
    for (const index of [0, 1])
      await assert.rejects(sessions.find('email', credentials(index)), { errcode: 'M_THREEPID_AUTH_FAILED' });
    for (const index of [2, 3]) await sessions.find('email', credentials(index));
  });

  it('bounds the number of validation sessions even if transactions that check the number are rolled back', async () => {
    const { clock, sendRequest, count, sessions } = await setUp(20);
    for (let index = 0; index < 100; index++) {
      clock.advance(1);
      await sendRequest(`user${index}@example.org`);
      // The twentieth transaction since the last check checks the number of sessions.
      if (index % 19 !== 18) continue;
      const request = { medium: 'email', purpose: 'registration', clientSecret: 'secret' } as const;
      const failing = sessions.begin(
        { ...request, address: 'failing@example.org', sendAttempt: 1, nextLink: undefined },
        async () => undefined,
        async () => {
          throw new Error('rolled back');
        },
      );
      await assert.rejects(failing, /rolled back/);
    }
    const rows = await count('validation_sessions');
    assert.ok(rows >= 20 && rows <= 40, `${rows} rows`);
  });

  it('keeps a validation session validated when its link is opened while another message is requested', async () => {
    const { sessions } = await setUp();
    const request = {
      medium: 'email' as const,
      address: 'user@example.org',
      purpose: 'registration' as const,
      clientSecret: 'secret',
      nextLink: undefined,
    };
    const sentTokens: string[] = [];
    const begin = (sendAttempt: number, prepare = async () => {}) =>
      sessions.begin(
        { ...request, sendAttempt },
        async () => void (await prepare()),
        async (_writer, _sid, token) => void sentTokens.push(token),
      );
    const sid = await begin(1);
    const credentials = { sid, clientSecret: 'secret' };
    const openLink = async () => void (await sessions.submit('registration', credentials, sentTokens[0]!));
    assert.equal(await begin(2, openLink), sid);
    const session = await sessions.find('email', credentials);
    assert.equal(sessions.validated(session)?.address, 'user@example.org');
  });

  it('applies the rate limits to a request for a validation mail before modules check the address', async () => {
    const calls: string[] = [];
    const { sendRequest } = await setUp(20, calls);
    await sendRequest('user@example.org');
    assert.deepEqual(calls, [
      'limit of client 127.0.0.1',
      'limit of email user@example.org',
      'check of a module',
    ]);
  });

  it('deletes expired validation sessions and their tokens', async () => {
    const { clock, jobs, sendRequest, count } = await setUp();
    await jobs.start();
    await sendRequest('old@example.org');
    clock.advance(2 * hour);
    await jobs.settled();
    assert.deepEqual([await count('validation_sessions'), await count('validation_tokens')], [0, 0]);
    await jobs.stop();
  });

  it('does the same work for used and unknown addresses when the response must not reveal whether an address is used [option: request_token_inhibit_3pid_errors]', async () => {
    const { database, addresses, sendRequest } = await setUp();
    await addresses.add('@anna:test', { medium: 'email', address: 'anna@example.org', validatedAt: 1 });
    const workOf = async (...parameters: Parameters<typeof sendRequest>) => {
      const { reads, writes, transactions } = { ...database.statistics };
      await sendRequest(...parameters);
      const after = database.statistics;
      return [after.reads - reads, after.writes - writes, after.transactions - transactions];
    };
    for (const purpose of ['registration', 'password_reset', 'add_threepid'] as const) {
      const used = await workOf('anna@example.org', purpose);
      assert.deepEqual(await workOf('ben@example.org', purpose), used, purpose);
    }
  });
});
