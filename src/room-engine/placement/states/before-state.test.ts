import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { manualClock } from '../../../../test/support/clocks/manual-clock.ts';
import { TimeSlices } from '../../../kernel/time-slices.ts';
import { stateMapKey } from '../../../protocol/index.ts';
import type { StoredEvent } from '../../stored-event.ts';
import type { WritableHead } from '../../timeline/writable-head.ts';
import type { PlacementDeps } from '../placement-deps.ts';
import { BeforeStates } from './before-state.ts';

describe('BeforeStates', () => {
  it('fails for a state whose state key no database can store', { timeout: 10_000 }, async () => {
    const storable = stateMapKey('m.room.member', '@alice:test');
    const unstorable = stateMapKey('m.room.member', '@al\0ice:test');
    let lookups = 0;
    const prepareMany = async (keys: Iterable<string>) => {
      if (++lookups > 100) throw new Error('the state keys are looked up again and again');
      return new Map([...keys].filter((key) => key !== unstorable).map((key) => [key, 1]));
    };
    const deps = { slices: new TimeSlices(manualClock()), states: { stateKeys: { prepareMany } } };
    const states = new BeforeStates(deps as unknown as PlacementDeps);
    const head = { state: new Map() } as unknown as WritableHead;
    const stored = { nid: 1 } as StoredEvent;
    await assert.rejects(
      states.ofState(head, new Map([storable, unstorable].map((key) => [key, stored]))),
      /a state key cannot be stored/,
    );
  });
});
