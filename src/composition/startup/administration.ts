import type { OptionPlaces } from '../../kernel/config/index.ts';
import { startAdmin } from '../admin.ts';
import type { MainKernel } from '../kernel.ts';
import type { OpenedSlices } from '../opened-slices.ts';
import { startServerViews } from '../server-views.ts';
import type { Foundation } from './foundation.ts';
import type { Messaging } from './messaging.ts';
import type { UsersAndRooms } from './users-and-rooms.ts';

/**
 * Opens the admin API, with its views of the whole server.
 * @param origins the file and the line of each given option
 * @returns the audit log of administrators, and these views
 */
export function startAdministration(
  kernel: MainKernel,
  parts: Foundation & UsersAndRooms & Messaging,
  origins: OptionPlaces,
  opened: OpenedSlices,
) {
  const { federation, media, modules, oauth, pushers, thirdPartyIds } = parts;
  const { users, encryption, rooms, upkeep, directory, reports, sender, dailyFigures } = parts;
  const { addresses } = thirdPartyIds.thirdPartyIds;
  const audit = startAdmin(
    {
      kernel,
      userServices: { users, pushers, addresses, encryption, resets: oauth.resets },
      roomServices: { rooms, upkeep, directory, reports },
      federation,
      sender,
      media,
      modules: modules?.administration,
    },
    opened,
  );
  const views = startServerViews(kernel, { rooms, sender, dailyFigures, origins }, opened);
  return { audit, views };
}
