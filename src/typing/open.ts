import type { RoomReader } from '../room-engine/index.ts';
import { typingRoutes } from './routes.ts';
import { typingSyncSource } from './sync-source.ts';
import { Typing, type TypingDeps } from './typing.ts';

/** Opens typing notifications. */
export function openTyping(deps: Omit<TypingDeps, 'roomStream'> & { readonly engine: RoomReader }) {
  const { engine } = deps;
  const typing = new Typing({ ...deps, roomStream: engine.stream });
  return {
    typing,
    routes: typingRoutes(typing, engine),
    syncSources: [typingSyncSource(typing, engine.ignored, deps.caches)],
    streams: [typing.typingStream],
    stop: () => typing.close(),
  };
}
