import { createContext } from 'preact';
import { useContext } from 'preact/hooks';
import type { Api } from '../api/request.ts';

/** The session of the signed-in administrator, with the means to send requests. */
export interface SignedIn {
  readonly api: Api;
  readonly userId: string;
  readonly serverName: string;
}

export const SessionContext = createContext<SignedIn | undefined>(undefined);

/** Returns the session of the signed-in administrator. @throws Error outside of the signed-in application */
export function useSession(): SignedIn {
  const session = useContext(SessionContext);
  if (session === undefined) throw new Error('This page needs a session');
  return session;
}
