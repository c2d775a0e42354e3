import type { Subject } from '../compared-request.ts';
import { accountData } from './account-data.ts';
import { accounts } from './accounts.ts';
import { adminRooms } from './admin-rooms.ts';
import { adminServer } from './admin-server.ts';
import { adminUsers } from './admin-users.ts';
import { devices } from './devices.ts';
import { directory } from './directory.ts';
import { federation, general } from './general.ts';
import { keys } from './keys.ts';
import { media } from './media.ts';
import { membership } from './membership.ts';
import { profiles } from './profiles.ts';
import { pushRules } from './push-rules.ts';
import { reading } from './reading.ts';
import { roomCreation, roomState } from './rooms.ts';
import { sync } from './sync.ts';

/** All compared requests. */
export const subjects: readonly Subject[] = [
  accounts,
  devices,
  profiles,
  accountData,
  pushRules,
  keys,
  directory,
  roomCreation,
  roomState,
  membership,
  reading,
  sync,
  media,
  general,
  federation,
  adminUsers,
  adminRooms,
  adminServer,
];
