import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { manualClock } from '../../../test/support/clocks/manual-clock.ts';
import { silentLogger } from '../../kernel/observability/index.ts';
import type { JsonObject } from '../../protocol/index.ts';
import { EphemeralData, type EphemeralDataDeps } from './ephemeral-data.ts';

describe('EphemeralData', () => {
  const open = (
    servicesOf: (roomId: string) => Promise<unknown[]>,
    { isChanging = (): boolean => false, caughtUp = async () => {}, namespace = [] as string[] } = {},
  ) => {
    const listeners: Record<string, (fact: never) => void> = {};
    const stream = (name: string) => ({
      subscribe: (listener: (fact: never) => void) => {
        listeners[name] = listener;
      },
    });
    const service = { id: 'bridge', registration: { receivesEphemeral: true } };
    const data = new EphemeralData({
      services: [service],
      rooms: { servicesOf, isChanging },
      users: { servicesInterestedIn: (userId: string) => (namespace.includes(userId) ? [service] : []) },
      caughtUp,
      typing: { typingStream: stream('typing'), inRoom: () => [] },
      receipts: { receiptStream: stream('receipts') },
      presence: { presenceStream: stream('presence') },
      clock: manualClock(),
      log: silentLogger,
      onData: () => undefined,
    } as unknown as EphemeralDataDeps);
    return { data, service, publish: (name: string, fact: unknown) => listeners[name]!(fact as never) };
  };

  it('drops typing, receipts and presence while 1,000 changes wait for a slow database', async () => {
    const answer = Promise.withResolvers<unknown[]>();
    let lookups = 0;
    const { data, publish } = open(() => {
      lookups += 1;
      return answer.promise;
    });
    for (let count = 0; count < 3_000; count++) publish('typing', { roomId: `!${count}` });
    answer.resolve([]);
    await data.idle();
    assert.equal(lookups, 1_000);
    publish('typing', { roomId: '!later' });
    await data.idle();
    assert.equal(lookups, 1_001);
  });

  it('keeps a receipt in a room for a service whose user has just joined the room', async () => {
    const membershipsHandled = Promise.withResolvers<void>();
    let isJoined = false;
    const { data, service, publish } = open(async () => (isJoined ? [service] : []), {
      isChanging: () => !isJoined,
      caughtUp: () => membershipsHandled.promise,
    });
    publish('receipts', { roomId: '!room', userId: '@ann:test', type: 'm.read', eventId: '$event', ts: 1 });
    await new Promise(setImmediate);
    isJoined = true;
    membershipsHandled.resolve();
    await data.idle();
    assert.equal(data.take('bridge').length, 1);
  });

  it('keeps public receipts of all users, and private receipts only of users in a namespace of the service', async () => {
    const { data, service, publish } = open(async () => [service], { namespace: ['@irc_ann:test'] });
    for (const userId of ['@irc_ann:test', '@ben:test']) {
      for (const type of ['m.read', 'm.read.private']) {
        publish('receipts', { roomId: '!room', userId, type, eventId: '$event', ts: 1 });
      }
    }
    await data.idle();
    const contents = data.take('bridge').map(({ content }) => (content as JsonObject)['$event']);
    assert.deepEqual(contents, [
      { 'm.read': { '@irc_ann:test': { ts: 1 } } },
      { 'm.read.private': { '@irc_ann:test': { ts: 1 } } },
      { 'm.read': { '@ben:test': { ts: 1 } } },
    ]);
  });

  it('keeps no private receipt of a user in a namespace of a service that does not receive the events of the room', async () => {
    const { data, publish } = open(async () => [], { namespace: ['@irc_ann:test'] });
    const receipt = { roomId: '!room', userId: '@irc_ann:test', eventId: '$event', ts: 1 };
    publish('receipts', { ...receipt, type: 'm.read.private' });
    await data.idle();
    assert.deepEqual(data.take('bridge'), []);
  });

  it('keeps the presence of a user in a namespace of a service, also when the user shares no room with the service', async () => {
    const { data, publish } = open(async () => [], { namespace: ['@irc_ann:test'] });
    const status = { presence: 'online', lastActiveAt: 0, currentlyActive: true };
    publish('presence', {
      changes: new Map(['@irc_ann:test', '@ben:test'].map((userId) => [userId, status])),
      rooms: new Map([['!room', ['@ben:test']]]),
    });
    await data.idle();
    assert.deepEqual(
      data.take('bridge').map(({ type, sender }) => [type, sender]),
      [['m.presence', '@irc_ann:test']],
    );
  });

  it('when the presence of a user changes, looks up rooms of the user only until all services that receive presence are found', async () => {
    const rooms: string[] = [];
    const { data, service, publish } = open(async (roomId) => {
      rooms.push(roomId);
      return roomId === '!other' ? [] : [service];
    });
    const status = { presence: 'online', lastActiveAt: 0, currentlyActive: true };
    publish('presence', {
      changes: new Map([['@ann:test', status]]),
      rooms: new Map(['!other', '!one', '!two', '!three'].map((roomId) => [roomId, ['@ann:test']])),
    });
    await data.idle();
    assert.deepEqual(rooms, ['!other', '!one']);
    assert.equal(data.take('bridge').length, 1);
  });
});
