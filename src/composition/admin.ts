import { openAdmin } from '../admin/index.ts';
import type { Rooms } from '../rooms/index.ts';
import type { Kernel } from './kernel.ts';
import type { OpenedSlices } from './opened-slices.ts';
import type { Users } from './users.ts';

/** Opens the admin API over all other slices; to be called before jobs are started. */
export function startAdmin(
  kernel: Kernel,
  { accounts, profiles, accountData }: Users,
  rooms: Rooms,
  opened: OpenedSlices,
): void {
  opened.add(
    'admin API',
    openAdmin({
      ...kernel,
      accounts,
      profiles,
      accountData,
      engine: rooms.engine,
      options: kernel.configuration.accounts,
    }),
  );
}
