import assert from 'node:assert/strict';
import { describe, it, mock } from 'node:test';
import { forSelectedDatabases } from '../../../../test/support/databases/databases.ts';
import { alice, bob, RoomsUnderTest } from '../../../../test/support/rooms/rooms.ts';
import { noFilter } from '../../../filters/index.ts';
import { TextBuilder } from '../../../kernel/http/index.ts';
import { splitStateMapKey } from '../../../protocol/index.ts';
import { EventText } from './event-text.ts';
import { JoinedRooms, type JoinedRoomsDeps } from './joined-rooms.ts';

interface Entry {
  readonly timeline: { readonly events: readonly SeenState[] };
  readonly state: { readonly events: readonly SeenState[] };
}

interface SeenState {
  readonly type: string;
  readonly state_key?: string;
}

forSelectedDatabases(import.meta.url, (open) => {
  describe('the entry of a joined room in a first sync (JoinedRooms)', () => {
    it('has the whole state, read in parts of at most 200 events', async () => {
      const fixture = await RoomsUnderTest.open(open);
      const { engine, rooms, streams } = fixture;
      const roomId = await fixture.room(alice, bob);
      const sender = { userId: alice, deviceId: 'DEVICE' };
      for (let index = 0; index < 450; index++)
        await rooms.sending.state(sender, roomId, { type: 'org.example', stateKey: `${index}` }, { index });
      const joinedRooms = new JoinedRooms({
        engine,
        text: new EventText(rooms.clientEvents),
        sources: { ephemeral: [], ephemeralBits: 0, roomCounts: [] },
      } as unknown as JoinedRoomsDeps);
      const head = await engine.heads.get(roomId);
      assert.ok(head);
      const list = mock.method(engine.events, 'list');
      const filter = noFilter;
      const recipient = { userId: bob, deviceId: 'D', filter, timelineLimit: 5, stateAfter: undefined };
      const text = await joinedRooms.render(head, recipient, {
        after: undefined,
        upTo: streams.current,
        rejoinedAfter: undefined,
        changedBits: 0,
        accountData: [],
        initialEphemeral: new Map(),
        fullState: false,
      });
      const lengths = list.mock.calls.map(({ arguments: [nids] }) => nids.length);
      mock.restoreAll();
      assert.ok(Math.max(...lengths) <= 200, `${lengths}`);
      assert.ok(text instanceof TextBuilder);
      const { state, timeline } = JSON.parse(String(text.finish())) as Entry;
      const keys = [...state.events, ...timeline.events].map(({ type, state_key }) => `${type} ${state_key}`);
      const expected = [...head.state.keys()].map((key) => splitStateMapKey(key).join(' '));
      assert.deepEqual(keys.sort(), expected.sort());
    });
  });
});
