import type { ThirdPartyIdentifiers } from '../../accounts/index.ts';
import type { AnyWriter } from '../../kernel/database/index.ts';
import { mailAppId, type PusherSettings } from '../pusher.ts';
import type { Pushers } from '../pushers.ts';

/** Returns the pusher that the server itself adds for a new user with this mail address. */
const subscription = (address: string): PusherSettings => ({
  kind: 'email',
  appId: mailAppId,
  pushkey: address,
  appDisplayName: 'Email Notifications',
  deviceDisplayName: address,
  profileTag: undefined,
  lang: 'en',
  data: {},
  enabled: true,
});

/**
 * Returns `identifiers`, except that `bind` also subscribes the account to mailed notifications, in the transaction
 * that adds the mail address. Registrations use it where `email.notif_for_new_users` is on.
 */
export function subscribingNewUsers(
  identifiers: ThirdPartyIdentifiers,
  pushers: Pushers,
): ThirdPartyIdentifiers {
  return {
    checkUse: identifiers.checkUse,
    resetStages: () => identifiers.resetStages(),
    findUser: (medium, address) => identifiers.findUser(medium, address),
    phoneNumber: (country, number) => identifiers.phoneNumber(country, number),
    isAllowed: (medium, address) => identifiers.isAllowed(medium, address),
    endValidations: (writer, address) => identifiers.endValidations(writer, address),
    unpublishAll: (userId, server) => identifiers.unpublishAll(userId, server),
    async bind(writer, userId, address) {
      await identifiers.bind(writer, userId, address);
      await subscribeNewUser(pushers, writer, userId, address);
    },
  };
}

/**
 * Subscribes a new user to mailed notifications at an address, inside the caller's transaction; ignores phone numbers.
 */
export async function subscribeNewUser(
  pushers: Pushers,
  writer: AnyWriter,
  userId: string,
  { medium, address }: { readonly medium: string; readonly address: string },
): Promise<void> {
  if (medium !== 'email') return;
  // The pusher has no device, so that it does not end with the session of the registration.
  await pushers.setIn(writer, { userId, deviceId: undefined }, subscription(address), false);
}
