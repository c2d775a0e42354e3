import { type SectionType, section } from '../kernel/config/index.ts';
import { autoJoinOptions } from './options/auto-join.ts';
import { creationOptions } from './options/creation.ts';
import { membershipOptions } from './options/membership.ts';
import { retentionOptions } from './options/retention.ts';
import { roomRules } from './options/room-rules.ts';

/** The options of rooms: creation, membership, auto-join and retention. */
export const roomsSection = section({
  title: 'Rooms',
  options: { ...creationOptions, ...membershipOptions, ...autoJoinOptions, ...retentionOptions },
  rules: roomRules,
});

export type RoomsConfig = SectionType<typeof roomsSection>;
