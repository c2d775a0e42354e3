import type { RoomFact, RoomReader } from '../../room-engine/index.ts';
import type { ModuleCalls } from '../calls/module-calls.ts';
import type { RegisteredCallbacks } from '../registered-callbacks.ts';
import { isShown, moduleEvent, roomStateOf } from './room-state.ts';

/** Passes new events to the modules that receive them; follows nothing where there are none. */
export function followNewEvents(
  callbacks: RegisteredCallbacks,
  calls: ModuleCalls,
  engine: RoomReader,
): void {
  const receivers = callbacks.rulesWith('onNewEvent');
  if (receivers.length === 0) return;
  engine.stream.subscribe(({ onTimeline, roomId, stored }: RoomFact) => {
    if (!onTimeline || !isShown(stored)) return;
    const [event, state] = [moduleEvent(stored), roomStateOf(engine, roomId)];
    for (const { module, callbacks: receive } of receivers) {
      // The failure is logged already.
      calls.run(module, 'onNewEvent', () => receive(event, state)).catch(() => {});
    }
  });
}
