import type { NewUserPages } from '../browser-logins/browser-logins.ts';

/** Paths of the pages, as browsers see them. */
export const accountDetailsPath = '/_synapse/client/pick_username/account_details';
export const consentPath = '/_synapse/client/new_user_consent';

/**
 * Returns the pages of new users: the user name, unless the provider decides it, and the terms.
 * @param terms the version of the terms that new users must accept
 */
export const newUserSteps = (terms: string | undefined): NewUserPages => ({
  next({ remote, localpart, accepted }) {
    const choosesName = remote.localpart === undefined || remote.confirmsLocalpart === true;
    if (choosesName && localpart === undefined) return accountDetailsPath;
    return terms !== undefined && accepted !== terms ? consentPath : undefined;
  },
});
