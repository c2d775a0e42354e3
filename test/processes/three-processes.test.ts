import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { eventually } from '../clients/eventually.ts';
import { federatingHearth } from '../clients/federating-hearths.ts';
import type { HearthProcess } from '../clients/hearth-process.ts';
import { makeTestAuthority, type TestAuthority } from '../support/network/test-authority.ts';
import { ApiClient, ApiError } from './crash/api-client.ts';

/** Milliseconds that a user waits after each event, so that the servers are not busy with more events than the test needs. */
const pause = 10;

/** Maximum time in milliseconds until all servers have all events. */
const convergenceTimeout = 180_000;

interface StateEvent {
  readonly type: string;
  readonly state_key: string;
  readonly event_id: string;
  readonly sender: string;
  readonly content: Readonly<Record<string, unknown>>;
}

/** A user who sends events again and again, and retries each until the server has acknowledged it. */
class Sender {
  readonly client: ApiClient;
  /** Ids of acknowledged events by room. */
  readonly acknowledged = new Map<string, string[]>();
  #count = 0;

  constructor(client: ApiClient) {
    this.client = client;
  }

  /** Sends messages and state events into the rooms until `isOver`. */
  async sendUntil(roomIds: readonly string[], isOver: () => boolean): Promise<void> {
    while (!isOver()) {
      for (const roomId of roomIds) {
        await this.sendNext(roomId);
        await sleep(pause);
      }
    }
  }

  async sendNext(roomId: string): Promise<void> {
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
        const eventIds = this.acknowledged.get(roomId) ?? [];
        this.acknowledged.set(roomId, [...eventIds, eventId]);
        return;
      } catch (error) {
        // Requests fail while the server is down.
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

describe('three servers, each in its own process, over TLS', () => {
  let authority: TestAuthority;
  let hearths: HearthProcess[] = [];
  let senders: Sender[];
  const roomIds: string[] = [];

  before(async () => {
    authority = makeTestAuthority();
    hearths = await Promise.all([1, 2, 3].map(() => federatingHearth(authority)));
    await Promise.all(hearths.map((hearth) => hearth.start()));
    senders = await Promise.all(
      hearths.map(async ({ url }, index) => new Sender(await ApiClient.register(url, `sender${index}`))),
    );
    for (const [index, { client }] of senders.entries()) roomIds.push(await makeRoom(client, index));
  });
  after(async () => {
    await Promise.all(hearths.map((hearth) => hearth.remove()));
    authority?.remove();
  });

  /**
   * Creates a room of `owner` that the other users join; each user may send state events.
   * @param index selects the room version
   */
  async function makeRoom(owner: ApiClient, index: number): Promise<string> {
    const otherClients = senders.map(({ client }) => client).filter((client) => client !== owner);
    const { room_id: roomId } = await owner.request<{ room_id: string }>('POST', '/createRoom', {
      preset: 'public_chat',
      room_version: ['10', '11', '12'][index],
      power_level_content_override: { state_default: 50, users_default: 50 },
    });
    const via = owner.userId.slice(owner.userId.indexOf(':') + 1);
    for (const client of otherClients) {
      const path = `/join/${encodeURIComponent(roomId)}?via=${encodeURIComponent(via)}`;
      await client.request('POST', path, {});
    }
    return roomId;
  }

  it('brings each event and the same state to three servers although one of the servers is killed meanwhile', async () => {
    let isOver = false;
    const sending = senders.map((sender) => sender.sendUntil(roomIds, () => isOver));
    const acknowledgedCounts = () =>
      senders.map(({ acknowledged }) => [...acknowledged.values()].reduce((sum, ids) => sum + ids.length, 0));
    const waitForProgress = async (what: string, indexes: readonly number[]) => {
      const countsBefore = acknowledgedCounts();
      await eventually(
        what,
        () => indexes.every((index) => acknowledgedCounts()[index]! >= countsBefore[index]! + 20),
        convergenceTimeout,
      );
    };
    await waitForProgress('all users to send events', [0, 1, 2]);
    await hearths[2]!.kill();
    await waitForProgress('the users of the running servers to send events', [0, 1]);
    await hearths[2]!.start();
    await waitForProgress('all users to send events again', [0, 1, 2]);
    isOver = true;
    await Promise.all(sending);

    for (const roomId of roomIds) {
      const allEventIds = senders.flatMap(({ acknowledged }) => acknowledged.get(roomId) ?? []);
      assert.equal(new Set(allEventIds).size, allEventIds.length);
      for (const sender of senders) {
        const missing = new Set(allEventIds);
        await eventually(
          `${sender.client.userId} to have all events`,
          async () => {
            for (const eventId of missing) {
              if (!(await sender.has(roomId, eventId))) return false;
              missing.delete(eventId);
            }
            return true;
          },
          convergenceTimeout,
        );
      }
      let states: ReadonlyMap<string, StateEvent>[] = [];
      const areStatesEqual = async () => {
        states = await Promise.all(senders.map((sender) => sender.state(roomId)));
        const [first, ...others] = states.map((state) =>
          [...state.values()].map(({ event_id }) => event_id).sort(),
        );
        return others.every((ids) => JSON.stringify(ids) === JSON.stringify(first));
      };
      await eventually('agreement on the state', areStatesEqual, 15_000).catch(() => {});
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
