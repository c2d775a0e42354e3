import type { NewUserPages } from '../browser-logins/browser-logins.ts';
import type { RemoteUser } from '../browser-logins/identity-provider.ts';

/** Paths of the pages in the spelling that browsers use. */
export const accountDetailsPath = '/_synapse/client/pick_username/account_details';
export const consentPath = '/_synapse/client/new_user_consent';

/** Whether a new user chooses or confirms the user name; otherwise the provider decides it. */
export const choosesName = ({ localpart, confirmsLocalpart }: RemoteUser): boolean =>
  localpart === undefined || confirmsLocalpart === true;

/**
 * Returns the pages of new users: the user name, unless the provider decides it, and the terms.
 * @param terms the version of the terms that new users must accept
 */
export const newUserSteps = (terms: string | undefined): NewUserPages => ({
  next({ remote, localpart: chosenName, accepted }) {
    if (choosesName(remote) && chosenName === undefined) return accountDetailsPath;
    return terms !== undefined && accepted !== terms ? consentPath : undefined;
  },
});
