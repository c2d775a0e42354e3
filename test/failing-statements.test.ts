import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { isDeepStrictEqual } from 'node:util';
import { Administration } from '../src/admin/test/administration.ts';
import { databaseChecks } from '../src/composition/database-checks.ts';
import { checkDatabase, openDatabase } from '../src/kernel/database/index.ts';
import { silentLogger } from '../src/kernel/observability/index.ts';
import { eventually } from './clients/eventually.ts';
import { type SkippableClock, skippableClock } from './support/clocks/skippable-clock.ts';
import { forSelectedDatabases } from './support/databases/databases.ts';
import { FailingStatements } from './support/databases/failing-statements.ts';
import { isThorough } from './support/inputs/thoroughness.ts';
import { startTestServer, type TestServer } from './support/servers/server.ts';
import { enc, TestClient } from './support/users/test-client.ts';

/** An operation of the admin API that needs several statements. */
interface Operation<Subject> {
  /** Creates the subject, for example a user. @param number number of the failing statement, to make names unique */
  prepare(number: number): Promise<Subject>;
  /** Sends the request. @returns the status of the response */
  request(subject: Subject): Promise<number>;
  /** Sends the request that follows a failed one, and returns its status; the default is `request`. */
  repeat?(subject: Subject): Promise<number>;
  /** Whether a part of the operation is done after the response. */
  readonly continuesAfterResponse?: boolean;
  /** Reads the state that shows whether the operation is complete. */
  state(subject: Subject): Promise<unknown>;
  /** The state after the whole operation. */
  complete(subject: Subject): unknown;
}

/** A waiting test advances the clock in steps of this many milliseconds, so that jobs are tried again. */
const waitStep = 2_000;

/** Every statement fails in a thorough run, otherwise each third one. */
const step = isThorough ? 1 : 3;

forSelectedDatabases(import.meta.url, ({ kind }) => {
  describe('the admin API when a statement of the database fails', () => {
    let server: TestServer;
    let admin: Administration;
    let faults: FailingStatements;
    let clock: SkippableClock;
    before(async () => {
      clock = skippableClock();
      faults = new FailingStatements();
      server = await startTestServer({ database: kind, clock });
      admin = await Administration.open(server);
    });
    after(async () => {
      faults.remove();
      await server.stop();
    });

    let users = 0;
    const newUser = () => TestClient.register(server, `user${users++}`);
    const statusOf = async (method: string, path: string, body?: unknown) =>
      (await admin.call(method, path, body)).status;

    /**
     * Performs an operation once for every `step`th of its statements, makes that one fail, and repeats the request.
     * Checks that the operation is complete at the end, and that the database has no inconsistency.
     */
    async function failEachStatement<Subject>(operation: Operation<Subject>): Promise<void> {
      const { prepare, request, repeat = request, continuesAfterResponse, state, complete } = operation;
      let failures = 0;
      for (let number = 1, hasFailed = true; hasFailed; number += step) {
        const subject = await prepare(number);
        faults.failAt(number);
        const status = await request(subject);
        const expected = complete(subject);
        const isComplete = async () => isDeepStrictEqual(await state(subject), expected);
        if (continuesAfterResponse)
          await eventually('a failure or the end', async () => faults.hasFailed || isComplete());
        hasFailed = faults.hasFailed;
        faults.end();
        const about = `statement ${number} failed: ${hasFailed}`;
        if (status === 500 && hasFailed) {
          failures += 1;
          const repeated = await repeat(subject);
          assert.ok(repeated < 300, `${about}: the repeated request is answered ${repeated}`);
        } else assert.ok(status < 300, `${about}: the request is answered ${status}`);
        let found: unknown;
        await eventually(`the complete operation (${about})`, async () => {
          clock.advance(waitStep);
          found = await state(subject);
          return isDeepStrictEqual(found, expected);
        }).catch(() => assert.deepEqual(found, expected, about));
      }
      assert.ok(failures > 0, 'no request has failed');
      const database = await openDatabase(server.databaseOptions, { log: silentLogger });
      const results = await checkDatabase({ main: database, state: database }, databaseChecks(kind), false);
      await database.close();
      assert.deepEqual(
        results.filter(({ outcome }) => outcome !== 'none'),
        [],
      );
    }

    /** Returns the fields of a user that the tests set. */
    const userOf = async (userId: string) => {
      const { body } = await admin.call('GET', `/v2/users/${userId}`);
      const { displayname, avatar_url, admin: isAdmin, user_type, locked, deactivated, erased } = body;
      const threepids = (body['threepids'] as { address: string }[] | undefined)?.map((one) => one.address);
      return { displayname, avatar_url, admin: isAdmin, user_type, locked, deactivated, erased, threepids };
    };
    const logsIn = async (user: string, password: string) => {
      const body = { type: 'm.login.password', identifier: { type: 'm.id.user', user }, password };
      return (await server.api('POST', '/_matrix/client/v3/login', { body })).status === 200;
    };
    const fieldsOf = (number: number) => ({
      password: 'new password',
      displayname: `Name ${number}`,
      avatar_url: 'mxc://test/avatar',
      admin: true,
      user_type: 'support',
      threepids: [{ medium: 'email', address: `user${number}.${users}@example.org` }],
    });
    const completeUser = (fields: ReturnType<typeof fieldsOf>) => {
      const { password: _, threepids, ...rest } = fields;
      const flags = { locked: false, deactivated: false, erased: false };
      return { ...rest, ...flags, threepids: threepids.map(({ address }) => address) };
    };

    it('creates a user with all properties when PUT /users/{userId} is repeated after a failure', () =>
      failEachStatement({
        prepare: async (number) => ({ userId: `@created${number}:test`, fields: fieldsOf(number) }),
        request: ({ userId, fields }) => statusOf('PUT', `/v2/users/${userId}`, fields),
        state: async ({ userId }) => ({
          ...(await userOf(userId)),
          logsIn: await logsIn(userId, 'new password'),
        }),
        complete: ({ fields }) => ({ ...completeUser(fields), logsIn: true }),
      }));

    it('changes all properties of a user when PUT /users/{userId} is repeated after a failure', () =>
      failEachStatement({
        prepare: async (number) => {
          const user = await newUser();
          const roomId = await user.createRoom();
          return { user, roomId, fields: fieldsOf(number) };
        },
        request: ({ user, fields }) => statusOf('PUT', `/v2/users/${user.id}`, fields),
        state: async ({ user, roomId }) => {
          const path = `/v1/rooms/${enc(roomId)}/state`;
          const query = { type: 'm.room.member' };
          const { state } = await admin.do('GET', path, undefined, query);
          const [member] = state as { content: Record<string, unknown> }[];
          return {
            ...(await userOf(user.id)),
            logsIn: await logsIn(user.id, 'new password'),
            session: (await user.call('GET', '/account/whoami')).status,
            nameInRoom: member?.content['displayname'],
          };
        },
        complete: ({ fields }) => ({
          ...completeUser(fields),
          logsIn: true,
          session: 401,
          nameInRoom: fields.displayname,
        }),
      }));

    it('deactivates and erases a user when POST /deactivate/{userId} is repeated after a failure', () =>
      failEachStatement({
        prepare: async () => {
          const user = await newUser();
          await user.do('PUT', `/profile/${enc(user.id)}/displayname`, { displayname: 'Name' });
          await user.do('PUT', `/user/${enc(user.id)}/account_data/org.example`, { a: 1 });
          const other = await newUser();
          const roomId = await other.createRoom();
          await user.join(roomId);
          return { user, other, roomId };
        },
        continuesAfterResponse: true,
        request: ({ user }) => statusOf('POST', `/v1/deactivate/${user.id}`, { erase: true }),
        state: async ({ user, other, roomId }) => {
          const { displayname, deactivated, erased } = await userOf(user.id);
          return {
            displayname,
            deactivated,
            erased,
            session: (await user.call('GET', '/account/whoami')).status,
            devices: (await admin.do('GET', `/v2/users/${user.id}/devices`))['total'],
            members: (await admin.do('GET', `/v1/rooms/${enc(roomId)}/members`))['members'],
            profile: (await other.call('GET', `/profile/${enc(user.id)}/displayname`)).status,
          };
        },
        complete: ({ other }) => ({
          displayname: null,
          deactivated: true,
          erased: true,
          session: 401,
          devices: 0,
          members: [other.id],
          profile: 404,
        }),
      }));

    const deletionStatuses = async (roomId: string) => {
      const { results } = await admin.do('GET', '/v1/room_deletions', undefined, { room_id: roomId });
      return (results as { status: string }[]).map(({ status }) => status);
    };
    const membersOf = async (roomId: string) =>
      (await admin.call('GET', `/v1/rooms/${enc(roomId)}/members`)).body['members'];

    it('deletes a room after a failure of DELETE /rooms/{roomId}: a stored job is tried again, otherwise the request is repeated', () =>
      failEachStatement({
        prepare: async (number) => {
          const [owner, member] = [await newUser(), await newUser()];
          const name = `deleted${number}`;
          const roomId = await owner.createRoom({ preset: 'public_chat', room_alias_name: name });
          await member.join(roomId);
          await member.say(roomId, 'hello');
          return { owner, member, roomId, alias: `#${name}:test` };
        },
        continuesAfterResponse: true,
        request: ({ owner, roomId }) =>
          statusOf('DELETE', `/v1/rooms/${enc(roomId)}`, { new_room_user_id: owner.id, block: true }),
        async repeat({ owner, roomId }) {
          if ((await deletionStatuses(roomId)).length > 0) return 200;
          const body = { new_room_user_id: owner.id, block: true };
          return statusOf('DELETE', `/v1/rooms/${enc(roomId)}`, body);
        },
        async state({ owner, member, roomId, alias }) {
          const { body } = await owner.call('GET', `/directory/room/${enc(alias)}`);
          const newRoomId = String(body['room_id']);
          return {
            room: (await admin.call('GET', `/v1/rooms/${enc(roomId)}`)).status,
            block: (await admin.do('GET', `/v1/rooms/${enc(roomId)}/block`))['block'],
            deletions: await deletionStatuses(roomId),
            members: await membersOf(newRoomId),
            rooms: await Promise.all(
              [owner, member].map(async (user) => {
                const { joined_rooms: joined } = await user.do('GET', '/joined_rooms');
                return isDeepStrictEqual(joined, [newRoomId]);
              }),
            ),
          };
        },
        complete: ({ owner, member }) => ({
          room: 404,
          block: true,
          deletions: ['complete'],
          members: [owner.id, member.id].sort(),
          rooms: [true, true],
        }),
      }));

    it('purges the history of a room after a failure of POST /purge_history: a stored job is tried again, otherwise the request is repeated', () =>
      failEachStatement({
        prepare: async () => {
          const user = await newUser();
          const roomId = await user.createRoom();
          const old = await user.say(roomId, 'old');
          await user.say(roomId, 'newer');
          return { roomId, old, kept: await user.say(roomId, 'kept'), purgeId: '' };
        },
        continuesAfterResponse: true,
        async request(subject) {
          const path = `/v1/purge_history/${enc(subject.roomId)}/${enc(subject.kept)}`;
          const { status, body } = await admin.call('POST', path, { delete_local_events: true });
          subject.purgeId = String(body['purge_id']);
          return status;
        },
        state: async ({ old, kept, purgeId }) => ({
          status: (await admin.call('GET', `/v1/purge_history_status/${purgeId}`)).body['status'],
          old: (await admin.call('GET', `/v1/fetch_event/${enc(old)}`)).status,
          kept: (await admin.call('GET', `/v1/fetch_event/${enc(kept)}`)).status,
        }),
        complete: () => ({ status: 'complete', old: 404, kept: 200 }),
      }));

    const upload = async (user: TestClient, content: string) => {
      const answer = await server.api('POST', '/_matrix/media/v3/upload', {
        token: user.token,
        body: content,
        headers: { 'content-type': 'text/plain' },
      });
      assert.equal(answer.status, 200, answer.raw);
      return String(answer.body['content_uri']).slice('mxc://test/'.length);
    };
    type Change = { readonly media_id: string; readonly quarantined: boolean };
    const changesFrom = async (from: number) => {
      const changes: Change[] = [];
      for (let next = from, last = -1; next !== last; ) {
        last = next;
        const page = await admin.do('GET', '/v1/media/quarantine_changes', undefined, { from: next });
        changes.push(...(page['changes'] as Change[]));
        next = Number(page['next_batch']);
        from = next;
      }
      return { changes, from };
    };
    const withUploads = async (number: number) => {
      const user = await newUser();
      const ids = [await upload(user, `${number} one`), await upload(user, `${number} two`)].sort();
      return { user, ids, from: (await changesFrom(0)).from };
    };
    const downloads = ({ user, ids }: { user: TestClient; ids: readonly string[] }) =>
      Promise.all(
        ids.map(async (id) => {
          const path = `/_matrix/client/v1/media/download/test/${id}`;
          return (await server.api('GET', path, { token: user.token })).status;
        }),
      );

    it('quarantines all files of a user when POST /user/{userId}/media/quarantine is repeated after a failure, and lists each change once', () =>
      failEachStatement({
        prepare: withUploads,
        request: ({ user }) => statusOf('POST', `/v1/user/${user.id}/media/quarantine`, {}),
        state: async (subject) => ({
          changes: (await changesFrom(subject.from)).changes.map((change) => change.media_id).sort(),
          downloads: await downloads(subject),
        }),
        complete: ({ ids }) => ({ changes: ids, downloads: [404, 404] }),
      }));

    it('deletes all files of a user when DELETE /users/{userId}/media is repeated after a failure', () =>
      failEachStatement({
        prepare: withUploads,
        request: ({ user }) => statusOf('DELETE', `/v1/users/${user.id}/media`),
        state: async (subject) => ({
          total: (await admin.do('GET', `/v1/users/${subject.user.id}/media`))['total'],
          downloads: await downloads(subject),
        }),
        complete: () => ({ total: 0, downloads: [404, 404] }),
      }));
  });
});
