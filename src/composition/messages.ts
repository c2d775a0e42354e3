import type { Route } from '../kernel/http/index.ts';
import { RelatedEvents, type Relations, relationRoutes, ThreadList } from '../relations/index.ts';
import type { Rooms } from '../rooms/index.ts';
import type { Conversations } from './conversations.ts';
import type { Kernel } from './kernel.ts';
import type { People } from './people.ts';
import type { Shutdown } from './shutdown.ts';

/** What the slices about messages stand on. */
export interface MessageSurroundings {
  readonly kernel: Kernel;
  readonly people: People;
  readonly rooms: Rooms;
  readonly relations: Relations;
  readonly conversations: Conversations;
  readonly shutdown: Shutdown;
}

/** Opens what clients do with messages beyond sending and reading them; before jobs are started. @returns their routes */
export async function startMessages(surroundings: MessageSurroundings): Promise<Route[]> {
  return [...relationsRoutes(surroundings)];
}

function relationsRoutes({ people, rooms, relations }: MessageSurroundings): Route[] {
  const parts = { ...rooms, index: relations.index, ignored: people.ignoredUsers };
  return relationRoutes(new RelatedEvents(parts), new ThreadList(parts));
}
