import type { Route } from '../../kernel/http/index.ts';
import type { MediaModeration } from '../../media/index.ts';
import { ImagesInUse } from '../media/images-in-use.ts';
import { mediaRoutes } from '../media/media-routes.ts';
import { mediaStatisticsRoute } from '../media/media-statistics-route.ts';
import { MediaUsage } from '../media/media-usage.ts';
import { RoomMedia } from '../media/room-media.ts';
import { UserMediaList } from '../media/user-media-list.ts';
import { userMediaRoutes } from '../media/user-media-routes.ts';
import { KnownRooms } from '../rooms/known-rooms.ts';
import type { AreaDeps } from './area-deps.ts';

/** Returns the routes about media. */
export function routesOfMedia(deps: AreaDeps, moderation: MediaModeration): Route[] {
  const { rooms, users, cursors, serverName } = deps;
  const roomMedia = new RoomMedia(rooms.engine);
  const images = new ImagesInUse(deps);
  return [
    ...mediaRoutes({ moderation, roomMedia, images, rooms: new KnownRooms(rooms), users, serverName }),
    ...userMediaRoutes({ moderation, list: new UserMediaList(deps), users, cursors }),
    mediaStatisticsRoute(new MediaUsage(deps), cursors),
  ];
}
