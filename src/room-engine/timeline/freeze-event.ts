import type { RoomEvent } from '../../protocol/index.ts';

/** Freezes an event deeply, so that code that shares it cannot change it by mistake. */
export function freezeEvent(event: RoomEvent): void {
  freeze(event);
}

function freeze(value: unknown): void {
  if (typeof value !== 'object' || value === null || Object.isFrozen(value)) return;
  Object.freeze(value);
  for (const field of Object.values(value)) freeze(field);
}
