.libPaths(c("/tmp/rp/lib", .libPaths())); suppressMessages({library(approxsvm); library(kernlab)}); setwd("/tmp/rp/k")
for (n in names(models <- readRDS("models.rds"))) { k <- models[[n]]; 
 nd <- if (is.null(terms(k)) ) as.matrix(if (n=="svrplain") iris[2:4] else iris[1:4]) else model.matrix(delete.response(terms(k)), iris)
 set.seed(1); nd <- nd[sample(nrow(nd), 600, TRUE), ]; nd <- nd + rnorm(length(nd), sd=.3)
 m <- asvm_load(paste0(n, ".asvm"), columns=colnames(nd))
 if (kernlab::type(k) %in% c("eps-svr","nu-svr","eps-bsvr")) { cat(n, max(abs(predict(m, nd) - predict(k, nd))), "\n"); next }
 if (n == "one") { cat(n, mean((predict(m, nd)=="1") == drop(predict(k, nd))), max(abs(predict(m,nd,"value")-predict(k,nd,type="decision"))), "\n"); next }
 if (!is.numeric(lev(k))) m <- asvm_load(paste0(n, ".asvm"), levels = lev(k), columns=colnames(nd))
 own <- as.character(predict(k, nd)); cat(n, mean(as.character(predict(m, nd)) == own), "")
 print(table(own)); if (!is.null(prob.model(k)[[1]])) print(max(abs(predict(m, nd, "probability")[, as.character(lev(k))] - predict(k, nd, type="probabilities"))))
 print(summary(as.vector(abs(abs(predict(m, nd, "value")) - abs(drop(predict(k, nd, type="decision")))))))
}
