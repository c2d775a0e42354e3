import type { RoomFact, RoomReader } from '../../room-engine/index.ts';
import { notify } from '../calls/call-all.ts';
import type { ModuleCalls } from '../calls/module-calls.ts';
import type { RegisteredCallbacks } from '../registered-callbacks.ts';
import { isShown, moduleEvent, roomStateOf } from './room-state.ts';

/** Passes new events to the modules that receive them. Follows no stream where no module receives events. */
export function followNewEvents(
  callbacks: RegisteredCallbacks,
  calls: ModuleCalls,
  engine: RoomReader,
): void {
  const receivers = callbacks.with('eventRules', 'onNewEvent');
  if (receivers.length === 0) return;
  engine.stream.subscribe(({ onTimeline, roomId, stored }: RoomFact) => {
    if (!onTimeline || !isShown(stored)) return;
    const event = moduleEvent(stored.event);
    const state = roomStateOf(() => engine, roomId, calls.context);
    notify(calls, 'onNewEvent', receivers, (receive) => receive(event, state));
  });
}
