import assert from 'node:assert/strict';
import { enc, Person } from '../../../../test/support/people/person.ts';
import type { TestServer } from '../../../../test/support/servers/server.ts';

/** Anna, Ben and Cleo on a server that nobody else uses. */
export interface Trio {
  readonly anna: Person;
  readonly ben: Person;
  readonly cleo: Person;
}

/** Registers the three. */
export async function registerTrio(server: TestServer): Promise<Trio> {
  const [anna, ben, cleo] = await Promise.all(
    ['anna', 'ben', 'cleo'].map((name) => Person.register(server, name)),
  );
  assert.ok(anna && ben && cleo);
  return { anna, ben, cleo };
}

/** A public room of Anna's that Ben is in. @returns its id */
export async function roomOfTwo({ anna, ben }: Trio): Promise<string> {
  const roomId = await anna.createRoom();
  await ben.join(roomId);
  return roomId;
}

/** An event as somebody is shown it. */
export const eventOf = (who: Person, roomId: string, eventId: string) =>
  who.do('GET', `/rooms/${enc(roomId)}/event/${enc(eventId)}`);

/** Fails unless the request is answered like that. */
export async function refuses(
  who: Person,
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
