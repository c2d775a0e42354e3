import assert from 'node:assert/strict';
import { after, before } from 'node:test';
import { startTestServer, type TestServer } from '../../../../test/support/servers/server.ts';
import { enc, TestClient } from '../../../../test/support/users/test-client.ts';

/** Anna, Ben and Cleo on a server without other users. */
export interface ThreeUsers {
  readonly anna: TestClient;
  readonly ben: TestClient;
  readonly cleo: TestClient;
}

/** Starts a server with three users for the tests of the current `describe`. */
export class ServerOfThreeUsers implements ThreeUsers {
  server!: TestServer;
  anna!: TestClient;
  ben!: TestClient;
  cleo!: TestClient;

  constructor(database: 'sqlite' | 'postgres') {
    before(async () => {
      this.server = await startTestServer({ database });
      const register = (name: string) => TestClient.register(this.server, name);
      [this.anna, this.ben, this.cleo] = await Promise.all([
        register('anna'),
        register('ben'),
        register('cleo'),
      ]);
    });
    after(() => this.server.stop());
  }
}

/** Creates a public room of Anna that Ben has joined. @returns its id */
export async function roomOfAnnaAndBen({ anna, ben }: ThreeUsers): Promise<string> {
  const roomId = await anna.createRoom();
  await ben.join(roomId);
  return roomId;
}

/** Requests an event. @returns the event as the client receives it */
export const eventOf = (user: TestClient, roomId: string, eventId: string) =>
  user.do('GET', `/rooms/${enc(roomId)}/event/${enc(eventId)}`);

/** Asserts the status and errcode of a refused request. */
export async function assertRefused(
  user: TestClient,
  method: string,
  path: string,
  body: unknown,
  status: number,
  errcode: string,
): Promise<void> {
  const answer = await user.call(method, path, body);
  assert.deepEqual(
    [answer.status, answer.body['errcode']],
    [status, errcode],
    `${method} ${path}: ${answer.raw}`,
  );
}
