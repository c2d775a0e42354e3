import assert from 'node:assert/strict';
import type { TestServer } from '../../../../test/support/servers/server.ts';
import { enc, TestClient } from '../../../../test/support/users/test-client.ts';

/** Anna, Ben and Cleo on a server without other users. */
export interface ThreeUsers {
  readonly anna: TestClient;
  readonly ben: TestClient;
  readonly cleo: TestClient;
}

/** Registers the three users. */
export async function registerThreeUsers(server: TestServer): Promise<ThreeUsers> {
  const [anna, ben, cleo] = await Promise.all(
    ['anna', 'ben', 'cleo'].map((name) => TestClient.register(server, name)),
  );
  assert.ok(anna && ben && cleo);
  return { anna, ben, cleo };
}

/** Creates a public room of Anna that Ben has joined. @returns its id */
export async function roomOfAnnaAndBen({ anna, ben }: ThreeUsers): Promise<string> {
  const roomId = await anna.createRoom();
  await ben.join(roomId);
  return roomId;
}

/** The event as the client receives it. */
export const eventOf = (who: TestClient, roomId: string, eventId: string) =>
  who.do('GET', `/rooms/${enc(roomId)}/event/${enc(eventId)}`);

/** Asserts the status and errcode of a refused request. */
export async function assertRefused(
  who: TestClient,
  method: string,
  path: string,
  body: unknown,
  status: number,
  errcode: string,
): Promise<void> {
  const answer = await who.call(method, path, body);
  assert.deepEqual(
    [answer.status, answer.body['errcode']],
    [status, errcode],
    `${method} ${path}: ${answer.raw}`,
  );
}
