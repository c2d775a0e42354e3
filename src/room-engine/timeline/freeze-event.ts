import type { RoomEvent } from '../../protocol/index.ts';

/** Makes an event unchangeable, whatever is in it included, so that those who share it can not change it by mistake. */
export function freezeEvent(event: RoomEvent): void {
  freeze(event);
}

function freeze(value: unknown): void {
  if (typeof value !== 'object' || value === null || Object.isFrozen(value)) return;
  Object.freeze(value);
  for (const member of Object.values(value)) freeze(member);
}
