import type { OtherServers } from './remote-servers.ts';

const alone = async (): Promise<never> => {
  throw new Error('there is no way to other servers');
};

/** For rooms without a network: nobody can be asked, and no key is known. */
export const noOtherServers: OtherServers = {
  events: {
    event: alone,
    missingEvents: alone,
    stateIds: alone,
    state: alone,
    eventAuth: alone,
    backfill: alone,
    timestampToEvent: alone,
  },
  keys: { findAll: async () => () => undefined },
  health: { backoffUntil: async () => Number.MAX_SAFE_INTEGER, onReturn: () => undefined },
};
