import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { forSelectedDatabases } from '../support/databases/databases.ts';
import { withSmallSteps } from '../support/databases/small-steps.ts';
import type { ScriptedServer } from '../support/other-servers/scripted-server.ts';
import { type FederatedServer, SeveralServers } from '../support/other-servers/several-servers.ts';
import { SignedRoom } from '../support/rooms/signed-room.ts';
import { enc, type TestClient } from '../support/users/test-client.ts';

/** Number of state entries of the room besides those that each room has. */
const entryCount = 2_000;

/** Number of ids that the server reserves with one write to the database. */
const boundStep = 20;

forSelectedDatabases(import.meta.url, ({ kind }) => {
  describe('a join to a remote room whose state entries outnumber the ids that the server reserves at a time', () => {
    let several: SeveralServers;
    let a: FederatedServer;
    let peer: ScriptedServer;
    let anna: TestClient;
    before(async () => {
      ({ several, a, peer, anna } = await withSmallSteps(boundStep, () =>
        SeveralServers.withScriptedServer(kind, 'large.test'),
      ));
    });
    after(() => several.stop());

    it('stores all entries, and fails no request of another user meanwhile', {
      timeout: 600_000,
    }, async () => {
      const ben = await a.registerClient('ben');
      const room = new SignedRoom('11', { serverName: peer.name, key: peer.key });
      for (let entry = 0; entry < entryCount; entry++) {
        room.setState('org.example.entry', { entry }, `entry ${entry}`);
      }
      const { state } = room.stateAndAuthChain();
      peer.on('GET /_matrix/federation/v1/make_join/', () => room.membershipTemplate(anna.id, 'join'));
      peer.on('PUT /_matrix/federation/v2/send_join/', () => ({ state, auth_chain: [] }));
      let isJoining = true;
      const otherRequests = (async () => {
        const statuses: number[] = [];
        while (isJoining) {
          const response = await ben.call('POST', '/createRoom', {});
          statuses.push(response.status);
        }
        return statuses;
      })();
      const joined = await anna
        .call('POST', `/join/${enc(room.roomId)}`, {}, { via: peer.name })
        .finally(() => (isJoining = false));
      assert.equal(joined.status, 200, joined.raw);
      const statuses = await otherRequests;
      assert.ok(statuses.length > 0);
      assert.deepEqual([...new Set(statuses)], [200]);
      const { body } = await anna.call('GET', `/rooms/${enc(room.roomId)}/state`);
      const entries = (body as unknown as { type: string }[]).filter(
        ({ type }) => type === 'org.example.entry',
      );
      assert.equal(entries.length, entryCount);
    });
  });
});
