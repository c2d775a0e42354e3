import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { eventually } from '../clients/eventually.ts';
import type { HearthProcess } from '../clients/hearth-process.ts';
import { federatingHearth } from '../clients/two-hearths.ts';
import { ApiClient, ApiError } from '../crash/api-client.ts';
import { makeTestAuthority, type TestAuthority } from '../support/network/test-authority.ts';

/** Milliseconds until what was said has gone round. */
const patience = 180_000;

interface StateEvent {
  readonly type: string;
  readonly state_key: string;
  readonly event_id: string;
  readonly sender: string;
  readonly content: Readonly<Record<string, unknown>>;
}

/** Somebody who says what comes to their mind, again and again until their server has taken it. */
class Speaker {
  readonly client: ApiClient;
  /** Ids of what their server has acknowledged, by room. */
  readonly acknowledged = new Map<string, string[]>();
  #count = 0;

  constructor(client: ApiClient) {
    this.client = client;
  }

  /** Talks, and changes the state of the rooms, until told to stop. */
  async talk(roomIds: readonly string[], isOver: () => boolean): Promise<void> {
    while (!isOver()) for (const roomId of roomIds) await this.say(roomId);
  }

  async say(roomId: string): Promise<void> {
    const { client } = this;
    const number = this.#count++;
    const room = `/rooms/${encodeURIComponent(roomId)}`;
    const [path, content]: [string, object] =
      number % 5 === 0
        ? [`${room}/state/m.room.topic/`, { topic: `${client.userId} ${number}` }]
        : number % 7 === 0
          ? [`${room}/state/test.entry/${number % 3}`, { by: client.userId, number }]
          : [`${room}/send/m.room.message/t${number}`, { msgtype: 'm.text', body: `${number}` }];
    for (;;) {
      try {
        const { event_id: eventId } = await client.request<{ event_id: string }>('PUT', path, content);
        const all = this.acknowledged.get(roomId) ?? [];
        this.acknowledged.set(roomId, [...all, eventId]);
        return;
      } catch (error) {
        // Nobody answers while the server is away.
        if (error instanceof ApiError) throw error;
        await sleep(20);
      }
    }
  }

  async state(roomId: string): Promise<ReadonlyMap<string, StateEvent>> {
    const path = `/rooms/${encodeURIComponent(roomId)}/state`;
    const events = await this.client.request<StateEvent[]>('GET', path);
    return new Map(events.map((event) => [`${event.type} ${event.state_key}`, event]));
  }

  async has(roomId: string, eventId: string): Promise<boolean> {
    try {
      return (await this.client.event(roomId, eventId)).event_id === eventId;
    } catch (error) {
      if (error instanceof ApiError && error.status === 404) return false;
      throw error;
    }
  }
}

describe('three servers, each a process of its own, over TLS', () => {
  let authority: TestAuthority;
  let hearths: HearthProcess[] = [];
  let speakers: Speaker[];
  const roomIds: string[] = [];

  before(async () => {
    authority = makeTestAuthority();
    hearths = await Promise.all([1, 2, 3].map(() => federatingHearth(authority)));
    await Promise.all(hearths.map((hearth) => hearth.start()));
    speakers = await Promise.all(
      hearths.map(async ({ url }, index) => new Speaker(await ApiClient.register(url, `speaker${index}`))),
    );
    for (const [index, { client }] of speakers.entries()) roomIds.push(await makeRoom(client, index));
  });
  after(async () => {
    await Promise.all(hearths.map((hearth) => hearth.remove()));
    authority?.remove();
  });

  /** A room of one of them that the others join, and in which all may do a lot. */
  async function makeRoom(owner: ApiClient, index: number): Promise<string> {
    const others = speakers.map(({ client }) => client).filter((client) => client !== owner);
    const { room_id: roomId } = await owner.request<{ room_id: string }>('POST', '/createRoom', {
      preset: 'public_chat',
      room_version: ['10', '11', '12'][index],
      power_level_content_override: { state_default: 50, users_default: 50 },
    });
    const via = owner.userId.slice(owner.userId.indexOf(':') + 1);
    for (const other of others) {
      const path = `/join/${encodeURIComponent(roomId)}?via=${encodeURIComponent(via)}`;
      await other.request('POST', path, {});
    }
    return roomId;
  }

  it('have everything and agree on the state, though one of them is killed while they talk', async () => {
    let isOver = false;
    const talking = speakers.map((speaker) => speaker.talk(roomIds, () => isOver));
    const said = () =>
      speakers.map(({ acknowledged }) =>
        [...acknowledged.values()].reduce((sum, ids) => sum + ids.length, 0),
      );
    const progress = async (what: string, of: readonly number[]) => {
      const before = said();
      await eventually(what, () => of.every((index) => said()[index]! >= before[index]! + 20), patience);
    };
    await progress('all to talk', [0, 1, 2]);
    await hearths[2]!.kill();
    await progress('the others to talk', [0, 1]);
    await hearths[2]!.start();
    await progress('all to talk again', [0, 1, 2]);
    isOver = true;
    await Promise.all(talking);

    for (const roomId of roomIds) {
      const everything = speakers.flatMap(({ acknowledged }) => acknowledged.get(roomId) ?? []);
      assert.equal(new Set(everything).size, everything.length);
      for (const speaker of speakers) {
        const missing = new Set(everything);
        await eventually(
          `${speaker.client.userId} to have everything`,
          async () => {
            for (const eventId of missing) {
              if (!(await speaker.has(roomId, eventId))) return false;
              missing.delete(eventId);
            }
            return true;
          },
          patience,
        );
      }
      let states: ReadonlyMap<string, StateEvent>[] = [];
      const isAgreed = async () => {
        states = await Promise.all(speakers.map((speaker) => speaker.state(roomId)));
        const [first, ...others] = states.map((state) =>
          [...state.values()].map((one) => one.event_id).sort(),
        );
        return others.every((ids) => JSON.stringify(ids) === JSON.stringify(first));
      };
      await eventually('agreement', isAgreed, 15_000).catch(() => {});
      const [first, ...others] = states.map((state) =>
        Object.fromEntries(
          [...state]
            .sort(([a], [b]) => (a < b ? -1 : 1))
            .map(([key, event]) => {
              const { type, state_key, event_id, sender, content } = event;
              return [key, { type, state_key, event_id, sender, content }];
            }),
        ),
      );
      assert.ok(Object.keys(first!).length >= 8);
      for (const other of others) assert.deepEqual(other, first);
    }
  });
});
