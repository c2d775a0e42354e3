import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { clockReadsDuring, fastClock } from '../../../test/support/clocks/fast-clock.ts';
import { forSelectedDatabases } from '../../../test/support/databases/databases.ts';
import { alice, bob, RoomsUnderTest } from '../../../test/support/rooms/rooms.ts';
import type { JsonObject } from '../../protocol/index.ts';
import { ClientEvents } from './client-events.ts';

forSelectedDatabases(import.meta.url, (open) => {
  describe('rendering events as JSON text (EventTexts)', () => {
    it('renders an event once for all members and for the device that sent it, and adds the transaction id for that device', async () => {
      const fixture = await RoomsUnderTest.open(open);
      const roomId = await fixture.room(alice, bob);
      const stored = await fixture.engine.events.getById(await fixture.say(alice, roomId, 'hello'));
      assert.ok(stored);
      let rendered = 0;
      const { texts } = new ClientEvents(fixture.engine, fixture.clock, undefined, async (events) => {
        rendered += events.length;
        return events.map(() => undefined);
      });
      const unsignedFor = async (userId: string, deviceId: string) => {
        const [text = ''] = await texts.render([{ stored, membership: 'join' }], { userId, deviceId });
        const event = JSON.parse(text) as JsonObject & { readonly unsigned: JsonObject };
        assert.equal(event['event_id'], stored.event.eventId);
        assert.equal(event.unsigned['membership'], 'join');
        return event.unsigned;
      };
      const { transaction_id: txnId } = await unsignedFor(alice, 'DEVICE');
      assert.equal(typeof txnId, 'string');
      assert.equal('transaction_id' in (await unsignedFor(alice, 'OTHER')), false);
      assert.equal('transaction_id' in (await unsignedFor(bob, 'DEVICE')), false);
      assert.equal((await unsignedFor(alice, 'DEVICE'))['transaction_id'], txnId);
      assert.equal(rendered, 1);
    });

    it('prepares the text of a message at once, and the text of a state event after reading the event that it replaces', async () => {
      const fixture = await RoomsUnderTest.open(open);
      const roomId = await fixture.room(alice);
      const { texts } = new ClientEvents(fixture.engine, fixture.clock);
      const prepare = async (eventId: string) => {
        const stored = await fixture.engine.events.getById(eventId);
        assert.ok(stored);
        const preparing = texts.prepare({ stored, membership: 'join' });
        const isAtOnce = texts.peek(stored) !== undefined;
        await preparing;
        const text = texts.peek(stored)?.at(fixture.clock.now(), 'join') ?? '';
        return { isAtOnce, unsigned: Object.keys((JSON.parse(text) as { unsigned: JsonObject }).unsigned) };
      };
      const message = await prepare(await fixture.say(alice, roomId, 'hello'));
      assert.deepEqual(message, { isAtOnce: true, unsigned: ['age', 'membership'] });
      const sender = { userId: alice, deviceId: 'DEVICE' };
      const topic = (text: string) =>
        fixture.rooms.sending.state(sender, roomId, { type: 'm.room.topic', stateKey: '' }, { topic: text });
      await topic('first');
      const replaced = await prepare(await topic('second'));
      assert.equal(replaced.isAtOnce, false);
      assert.ok(replaced.unsigned.includes('prev_content'), String(replaced.unsigned));
    });

    it('lets other work run more often while long events are rendered than while short events are rendered', async () => {
      const clock = fastClock();
      const fixture = await RoomsUnderTest.open(open, [], { clock });
      const roomId = await fixture.room(alice);
      const { texts } = new ClientEvents(fixture.engine, clock);
      const readsFor = async (length: number) => {
        const ids: string[] = [];
        for (let index = 0; index < 20; index++)
          ids.push(await fixture.say(alice, roomId, 'x'.repeat(length)));
        const events = [...(await fixture.engine.events.getManyById(ids)).values()];
        return clockReadsDuring(clock, async () => {
          const shown = events.map((stored) => ({ stored, membership: 'join' as const }));
          assert.equal((await texts.render(shown, { userId: bob, deviceId: 'DEVICE' })).length, 20);
        });
      };
      const [short, long] = [await readsFor(10), await readsFor(40_000)];
      assert.ok(long - short >= 8, `${short} and ${long}`);
    });

    it('lets other work run while hundreds of events are prepared as JSON objects', async () => {
      const clock = fastClock();
      const fixture = await RoomsUnderTest.open(open, [], { clock });
      const roomId = await fixture.room(alice);
      const stored = await fixture.engine.events.getById(await fixture.say(alice, roomId, 'hello'));
      assert.ok(stored);
      const clientEvents = new ClientEvents(fixture.engine, clock);
      const readsFor = (count: number) =>
        clockReadsDuring(clock, async () => {
          const events = Array.from({ length: count }, () => ({ stored, membership: 'join' as const }));
          assert.equal((await clientEvents.render(events, { userId: bob, deviceId: 'D' })).length, count);
        });
      const [few, many] = [await readsFor(10), await readsFor(410)];
      assert.ok(many - few >= 8, `${few} and ${many}`);
    });

    it('renders an event again that is redacted while other events are rendered', async () => {
      const clock = fastClock();
      const fixture = await RoomsUnderTest.open(open, [], { clock });
      const roomId = await fixture.room(alice);
      const ids: string[] = [];
      for (let index = 0; index < 5; index++) ids.push(await fixture.say(alice, roomId, 'x'.repeat(60_000)));
      const events = [...(await fixture.engine.events.getManyById(ids)).values()];
      const { texts } = new ClientEvents(fixture.engine, clock);
      const rendering = texts.shared(events);
      events[0]!.redactedBy = events[1]!.nid;
      const [first] = await rendering;
      assert.equal(first?.redactedBy, events[1]!.nid);
      assert.doesNotMatch(first.beforeAge, /xxx/);
    });
  });
});
