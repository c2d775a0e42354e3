import type { Route } from '../kernel/http/index.ts';
import { OpenIdTokens, openIdRoutes } from '../openid/index.ts';
import { RelatedEvents, type Relations, relationRoutes, ThreadList } from '../relations/index.ts';
import { Reports, reportRoutes } from '../reports/index.ts';
import type { Rooms } from '../rooms/index.ts';
import { Search, SearchIndex, searchRoutes } from '../search/index.ts';
import { callRoutes } from '../voip/index.ts';
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
  const { kernel } = surroundings;
  return [
    ...relationsRoutes(surroundings),
    ...reportsRoutes(surroundings),
    ...searchRoutes(await startSearch(surroundings)),
    ...openIdRoutes(new OpenIdTokens(kernel), kernel.serverName),
    ...callRoutes(kernel.configuration.accounts, kernel.clock),
  ];
}

/** `undefined` when nobody may search: then nothing is indexed either. */
async function startSearch({ kernel, people, rooms, shutdown }: MessageSurroundings) {
  if (!kernel.configuration.search.enable_search) return undefined;
  const index = new SearchIndex({ ...kernel, log: kernel.namedLog('search'), engine: rooms.engine });
  await index.start();
  shutdown.add('search', () => index.stop());
  return new Search({ rooms, index, ignored: people.ignoredUsers });
}

function reportsRoutes({ kernel, people, rooms }: MessageSurroundings): Route[] {
  const { accounts } = people.accounts;
  const reports = new Reports({
    ...kernel,
    engine: rooms.engine,
    userExists: (userId) => accounts.userExists(userId),
    limit: kernel.limiter(kernel.configuration.rateLimits.rc_reports),
  });
  return reportRoutes(reports);
}

function relationsRoutes({ people, rooms, relations }: MessageSurroundings): Route[] {
  const parts = { ...rooms, index: relations.index, ignored: people.ignoredUsers };
  return relationRoutes(new RelatedEvents(parts), new ThreadList(parts));
}
