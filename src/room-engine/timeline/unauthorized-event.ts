import { MatrixError } from '../../protocol/index.ts';

/** 403 M_FORBIDDEN: the authorization rules reject an event of a local user. */
export class UnauthorizedEvent extends MatrixError {
  constructor(reason: string) {
    super(403, 'M_FORBIDDEN', reason);
  }
}
