import type { Reply } from '../../kernel/http/index.ts';
import type { Pages } from '../../kernel/pages/index.ts';
import { MatrixError } from '../../protocol/index.ts';
import type { BrowserStages } from '../interactive-auth/browser-stages.ts';
import type { FormFields, FormValues, StageForm } from '../interactive-auth/stage.ts';

/** A stage of a session that a user completes on a page. */
export interface ShownStage {
  readonly type: string;
  readonly session: string;
  /** Address of the client. */
  readonly ip: string;
  /** URL that the form is sent to. */
  readonly url: string;
}

/** Shows the forms of stages of interactive authentication, and attempts the stages with the submitted fields. */
export class StagePages {
  readonly #stages: Pick<BrowserStages, 'formOf' | 'attempt'>;
  readonly #pages: Pages;

  constructor(deps: { browserStages: Pick<BrowserStages, 'formOf' | 'attempt'>; pages: Pages }) {
    this.#stages = deps.browserStages;
    this.#pages = deps.pages;
  }

  /**
   * Returns the page with the form of a stage.
   * @throws MatrixError M_UNRECOGNIZED for a stage without a form, M_FORBIDDEN for an unknown session
   */
  async show(stage: ShownStage): Promise<Reply> {
    const { form, context } = await this.#stages.formOf(stage.type, stage.session, stage.ip);
    return this.#page(form, stage, (await form.values?.(context)) ?? {});
  }

  /**
   * Attempts the stage.
   * @returns the page to show next; `undefined` when the stage is completed
   * @throws as `show`
   */
  async submit(stage: ShownStage, fields: FormFields): Promise<Reply | undefined> {
    const { type, session, ip } = stage;
    const { form, context } = await this.#stages.formOf(type, session, ip);
    try {
      const result = await form.submit(fields, context);
      if ('values' in result) return this.#page(form, stage, result.values);
      await this.#stages.attempt(session, type, result.auth, ip);
      return undefined;
    } catch (error) {
      if (!(error instanceof MatrixError)) throw error;
      const values = (await form.values?.(context)) ?? {};
      return this.#page(form, stage, { ...values, fields, error: error.message }, error.status);
    }
  }

  #page(form: StageForm, { session, url }: ShownStage, values: FormValues, status = 200): Promise<Reply> {
    const { template, policy } = form;
    return this.#pages.page(
      template,
      { myurl: url, session, ...values },
      { status, ...(policy && { policy }) },
    );
  }
}
