import type { Scenario } from '../scenario.ts';
import { adminLists } from './admin-lists.ts';
import { appservices } from './appservices.ts';
import { coldStart } from './cold-start.ts';
import { delivery } from './delivery.ts';
import { idleSync } from './idle-sync.ts';
import { initialSyncs } from './initial-sync.ts';
import { joins } from './joins.ts';
import { media } from './media.ts';
import { memory } from './memory.ts';
import { moduleCalls } from './module-calls.ts';
import { push } from './push.ts';
import { roomState } from './room-state.ts';
import { sendsInManyRooms, sendsInOneRoom } from './sends.ts';
import { stateResolution } from './state-resolution.ts';
import { storage } from './storage.ts';

/** All scenarios, in the order in which they run. */
export const scenarios: readonly Scenario[] = [
  sendsInManyRooms,
  sendsInOneRoom,
  delivery,
  idleSync,
  joins,
  initialSyncs,
  roomState,
  coldStart,
  storage,
  stateResolution,
  push,
  appservices,
  moduleCalls,
  media,
  adminLists,
  memory,
];
